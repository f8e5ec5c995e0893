// Changes to a document after it was read: single values from the command line, and one value laid over
// another.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "hw/document.h"
#include "hw/document_parse.h"
#include "hw/error.h"
#include "hw/json_text.h"

namespace moebius {

namespace {

void forget_lines(Value& value) {
  value.line = 0;
  for (Value& item : value.items) forget_lines(item);
}

int depth_of(const Value& value) {
  int deepest = 0;
  for (const Value& item : value.items) deepest = std::max(deepest, depth_of(item));
  const bool container = value.kind == Value::Kind::kArray || value.kind == Value::Kind::kObject;
  return deepest + (container ? 1 : 0);
}

Value empty_object() {
  Value object;
  object.kind = Value::Kind::kObject;
  return object;
}

// One --set: where it goes and what it sets, and the one form of its errors.
class Assignment {
 public:
  Assignment(const std::string& file, std::string_view pointer) : file_(file), pointer_(pointer) {}

  Value parsed(std::string_view json_text) const;
  std::vector<std::string> tokens() const;
  Value& child(Value& parent, const std::string& token, std::string_view parent_pointer) const;

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw input_error(
        fmt::format("{}: --set {}: expected {}, found {}", file_, shown_pointer(pointer_), expected, found));
  }

 private:
  std::string token(std::string_view escaped) const;
  Value& element(Value& array, const std::string& token) const;

  const std::string& file_;
  std::string_view pointer_;
};

// What is JSON stays JSON, the rest is a string: nobody wants to quote 400 Gb/s twice. A text that opens a
// bracket was meant as JSON, so that its fault is told instead.
Value Assignment::parsed(std::string_view json_text) const {
  Value value;
  const auto failure = parse_value(json_text, {}, value);
  if (!failure) {
    forget_lines(value);
    return value;
  }
  const bool meant_as_json = json_text.starts_with('{') || json_text.starts_with('[');
  Value text;
  if (!meant_as_json &&
      !parse_value(json_string(json_text), {}, text)) {  // the parser also checks that it is UTF-8
    forget_lines(text);
    return text;
  }
  throw input_error(fmt::format("{}: --set {}: {}", file_, shown_pointer(pointer_), failure->sentence));
}

std::vector<std::string> Assignment::tokens() const {
  Value checked;
  if (!pointer_.starts_with('/') || parse_value(json_string(pointer_), {}, checked))
    fail("a JSON pointer such as \"/plan/ep/degree\"", json_excerpt(pointer_));
  std::vector<std::string> result;
  std::string_view rest = pointer_;
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the slash
    const std::string_view part = rest.substr(0, rest.find('/'));
    result.push_back(token(part));
    rest.remove_prefix(part.size());
  }
  return result;
}

// RFC 6901: "~1" is a slash and "~0" a tilde.
std::string Assignment::token(std::string_view escaped) const {
  std::string result;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '~') {
      result += escaped[i];
      continue;
    }
    const char code = ++i < escaped.size() ? escaped[i] : '\0';
    if (code != '0' && code != '1')
      fail("\"~0\" or \"~1\" where the pointer has a tilde", json_excerpt(escaped));
    result += code == '0' ? '~' : '/';
  }
  return result;
}

Value& Assignment::element(Value& array, const std::string& token) const {
  if (token == "-") return array.items.emplace_back(empty_object());
  std::size_t index = array.items.size();
  const auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), index);
  const bool whole = failure == std::errc() && end == token.data() + token.size();
  const bool padded = token.size() > 1 && token[0] == '0';
  if (whole && !padded && index < array.items.size()) return array.items[index];
  const std::string indices =
      array.items.empty() ? "" : fmt::format("an index from 0 to {} or ", array.items.size() - 1);
  fail(indices + "\"-\", which appends to the array", json_excerpt(token));
}

Value& Assignment::child(Value& parent, const std::string& token, std::string_view parent_pointer) const {
  if (parent.kind == Value::Kind::kArray) return element(parent, token);
  if (parent.kind != Value::Kind::kObject)
    fail(fmt::format("an object or an array at {}",
                     parent_pointer.empty() ? "the root" : shown_pointer(parent_pointer)),
         parent.excerpt());
  const auto at = std::find(parent.keys.begin(), parent.keys.end(), token);
  if (at != parent.keys.end()) return parent.items[static_cast<std::size_t>(at - parent.keys.begin())];
  parent.keys.push_back(token);
  return parent.items.emplace_back(
      empty_object());  // what is missing on the way is made: strict readers find typos
}

}  // namespace

void set_at_pointer(Document& document, std::string_view pointer, std::string_view json_text) {
  const Assignment assignment(document.file, pointer);
  std::vector<std::string> tokens = assignment.tokens();
  Value value = assignment.parsed(json_text);
  const int limit = DocumentLimits{}.depth;
  if (static_cast<int>(tokens.size()) + depth_of(value) > limit)
    assignment.fail(fmt::format("at most {} levels of nesting", limit), "more");
  Value* target = &document.root;
  std::size_t parent_end = 0;  // the pointer up to here leads to *target
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    target = &assignment.child(*target, tokens[i], pointer.substr(0, parent_end));
    parent_end = std::min(pointer.find('/', parent_end + 1), pointer.size());
    // No object has a key "0": what is missing on the way to a first item is an array, to which it is
    // appended.
    const bool made = target->line == 0 && target->kind == Value::Kind::kObject && target->keys.empty();
    if (!made || i + 1 == tokens.size() || (tokens[i + 1] != "0" && tokens[i + 1] != "-")) continue;
    target->kind = Value::Kind::kArray;
    tokens[i + 1] = "-";
  }
  *target = std::move(value);
}

Value merged(const Value& base, const Value& changes) {
  if (base.kind != Value::Kind::kObject || changes.kind != Value::Kind::kObject) return changes;
  Value result = base;
  result.line = changes.line;
  result.origin = changes.origin;
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < base.keys.size(); ++i) places.emplace(base.keys[i], i);
  for (std::size_t i = 0; i < changes.keys.size(); ++i) {
    const auto place = places.find(changes.keys[i]);
    if (place != places.end()) {
      result.items[place->second] = merged(base.items[place->second], changes.items[i]);
    } else {
      result.keys.push_back(changes.keys[i]);
      result.items.push_back(changes.items[i]);
    }
  }
  return result;
}

}  // namespace moebius
