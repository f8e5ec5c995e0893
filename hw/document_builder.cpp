#include "hw/document_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hw/json_text.h"

namespace moebius {

namespace {

// One step of a JSON pointer (RFC 6901).
std::string pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) token += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return token;
}

// The index of the first key that stood before, or the number of keys.
std::size_t find_repeated(const std::vector<std::string>& keys, std::vector<std::uint32_t>& order) {
  std::size_t found = keys.size();
  if (keys.size() <= 12) {  // most objects; cheaper than sorting
    for (std::size_t i = 1; i < keys.size(); ++i)
      if (std::find(keys.begin(), keys.begin() + i, keys[i]) != keys.begin() + i) return i;
    return found;
  }
  order.resize(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&keys](std::uint32_t i) -> const std::string& { return keys[i]; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (keys[order[i]] == keys[order[i - 1]]) found = std::min<std::size_t>(found, order[i]);
  return found;
}

}  // namespace

bool DocumentBuilder::boolean(bool value, const char* end) {
  if (!add(Value::Kind::kBoolean, end)) return false;
  added_->boolean = value;
  return true;
}

bool DocumentBuilder::integer(std::int64_t value, const char* end) {
  if (!add(Value::Kind::kInteger, end)) return false;
  added_->integer = value;
  added_->number = static_cast<double>(value);
  return true;
}

bool DocumentBuilder::number(double value, std::string_view token, const char* end) {
  if (!add(Value::Kind::kNumber, end)) return false;
  added_->number = value;
  if (token.find_first_of(".eE") == std::string_view::npos) added_->text = shortened(token);
  const auto is_more = [](char c) { return c >= '1' && c <= '9'; };
  const auto mantissa_end = std::ranges::find_if(token, [](char c) { return c == 'e' || c == 'E'; });
  if (value != 0 || std::none_of(token.begin(), mantissa_end, is_more)) return true;
  return fail(added_->line,
              fmt::format("expected 0 or a number of at least 5e-324, found {}", shortened(token)));
}

bool DocumentBuilder::string(std::string_view value, const char* end) {
  if (!add(Value::Kind::kString, end)) return false;
  added_->text = value;
  return true;
}

bool DocumentBuilder::key(std::string_view name, const char* end) {
  Frame& frame = frames_[depth_ - 1];
  frame.container->keys.emplace_back(name);
  frame.key_lines.push_back(line_of_event(end));
  after_ = FaultContext::After::kKey;
  return true;
}

bool DocumentBuilder::fault(const char* last, std::string_view lexer_message) {
  using Inside = FaultContext::Inside;
  const bool in_object = depth_ > 0 && frames_[depth_ - 1].container->kind == Value::Kind::kObject;
  const TextFault fault = find_fault(text_, {.after = after_,
                                             .inside = depth_ == 0 ? Inside::kFile
                                                       : in_object ? Inside::kObject
                                                                   : Inside::kArray,
                                             .from = offset(event_),
                                             .last = offset(last),
                                             .lexer_message = lexer_message});
  return fail(line_at(fault.offset), fault.sentence);
}

// The line on which the thing just read ended.
int DocumentBuilder::line_of_event(const char* end) {
  event_ = end;
  lines_ += static_cast<int>(std::count(counted_, event_, '\n'));
  counted_ = event_;
  return lines_;
}

// Blank lines at the end do not count: a cut file is reported where its last text stands.
int DocumentBuilder::line_at(std::size_t offset) const {
  std::string_view before = text_.substr(0, offset);
  if (offset == text_.size()) before = before.substr(0, before.find_last_not_of(" \t\r\n") + 1);
  return 1 + static_cast<int>(std::ranges::count(before, '\n'));
}

bool DocumentBuilder::add(Value::Kind kind, const char* end) {
  const int line = line_of_event(end);
  if (++values_ > limits_.values)
    return fail(line, fmt::format("expected at most {} values, found more", limits_.values));
  after_ = FaultContext::After::kValue;
  added_ = depth_ == 0 ? &root_ : &frames_[depth_ - 1].container->items.emplace_back();
  added_->kind = kind;
  added_->line = line;
  return true;
}

bool DocumentBuilder::open(Value::Kind kind, FaultContext::After after, const char* end) {
  if (!add(kind, end)) return false;
  if (depth_ >= limits_.depth)
    return fail(added_->line,
                fmt::format("expected at most {} levels of nesting, found more", limits_.depth));
  if (frames_.size() == static_cast<std::size_t>(depth_)) frames_.emplace_back();
  Frame& frame = frames_[depth_++];
  frame.container = added_;
  frame.key_lines.clear();
  after_ = after;
  return true;
}

bool DocumentBuilder::close(const char* end) {
  --depth_;
  line_of_event(end);
  after_ = FaultContext::After::kValue;
  return true;
}

// Of a key of the innermost object: of those around it, the last key or item is open.
std::string DocumentBuilder::pointer_to(const std::string& key) const {
  std::string pointer;
  for (int i = 0; i + 1 < depth_; ++i) {
    const Value& around = *frames_[i].container;
    pointer += "/" + (around.kind == Value::Kind::kObject ? pointer_token(around.keys.back())
                                                          : std::to_string(around.items.size() - 1));
  }
  return pointer + "/" + pointer_token(key);
}

bool DocumentBuilder::keys_differ() {
  const Frame& frame = frames_[depth_ - 1];
  const std::vector<std::string>& keys = frame.container->keys;
  const std::size_t repeated = find_repeated(keys, order_);
  if (repeated == keys.size()) return true;
  return fail(frame.key_lines[repeated],
              fmt::format("{}: expected each key once, found {} again",
                          shown_pointer(pointer_to(keys[repeated])), json_excerpt(keys[repeated])));
}

bool DocumentBuilder::fail(int line, std::string sentence) {
  failure_ = ParseFailure{line, std::move(sentence)};
  return false;
}

}  // namespace moebius
