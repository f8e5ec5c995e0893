// The text is lexed by nlohmann's SAX parser. It does not tell where a value stood, so it reads through an
// iterator of ours that leaves a mark at the last character taken; lines are counted from mark to mark.
#include "hw/document_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "hw/document_fault.h"
#include "hw/error.h"
#include "hw/json_text.h"

namespace moebius {

namespace {

// Recursion over a Value (its destructor, to_json, merged) then fits any stack.
constexpr int kDeepest = 1000;

class MarkingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  MarkingIterator(const char* at, const char** mark) : at_(at), mark_(mark) {}
  reference operator*() const { return *at_; }
  MarkingIterator& operator++() {
    ++at_;
    return *this;
  }
  // The lexer compares with the end once before each character that it takes, and also when none is left: the
  // only moment at which both can be marked.
  bool operator!=(const MarkingIterator& other) const {
    *mark_ = at_;
    return at_ != other.at_;
  }
  bool operator==(const MarkingIterator& other) const { return !(*this != other); }

 private:
  const char* at_;
  const char** mark_;
};

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

class Builder {
 public:
  Builder(std::string_view text, const DocumentLimits& limits, Value& root)
      : text_(text),
        limits_(limits),
        root_(root),
        mark_(text.data()),
        counted_(text.data()),
        event_(text.data()) {}

  std::optional<ParseFailure> parse() {
    const MarkingIterator first(text_.data(), &mark_);
    const MarkingIterator end(text_.data() + text_.size(), &mark_);
    nlohmann::json::sax_parse(first, end, this, nlohmann::json::input_format_t::json, true, true);
    return std::move(failure_);
  }

  // The events of nlohmann's SAX interface; false stops it.
  bool null() { return add(Value::Kind::kNull, 1); }
  bool boolean(bool value) {
    if (!add(Value::Kind::kBoolean, 1)) return false;
    added_->boolean = value;
    return true;
  }
  bool number_integer(std::int64_t value) {
    if (!add(Value::Kind::kInteger, 0)) return false;
    added_->integer = value;
    added_->number = static_cast<double>(value);
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
    if (value <= kLargest) return number_integer(static_cast<std::int64_t>(value));
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(double value, const std::string& token) {
    if (!add(Value::Kind::kNumber, 0)) return false;
    added_->number = value;
    const auto is_more = [](char c) { return c >= '1' && c <= '9'; };
    const auto mantissa_end = std::ranges::find_if(token, [](char c) { return c == 'e' || c == 'E'; });
    if (value != 0 || std::none_of(token.begin(), mantissa_end, is_more)) return true;
    return fail(added_->line,
                fmt::format("expected 0 or a number of at least 5e-324, found {}", shortened(token)));
  }
  bool string(const std::string& value) {
    if (!add(Value::Kind::kString, 1)) return false;
    added_->text = value;
    return true;
  }
  bool binary(const std::vector<std::uint8_t>&) { return false; }  // JSON texts hold none
  bool start_object(std::size_t) { return open(Value::Kind::kObject, FaultContext::After::kObjectStart); }
  bool start_array(std::size_t) { return open(Value::Kind::kArray, FaultContext::After::kArrayStart); }
  bool key(const std::string& name) {
    Frame& frame = frames_[depth_ - 1];
    frame.container->keys.push_back(name);
    frame.key_lines.push_back(line_of_event(1));
    after_ = FaultContext::After::kKey;
    return true;
  }
  bool end_object() { return keys_differ() && close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& why) {
    using Inside = FaultContext::Inside;
    const bool in_object = depth_ > 0 && frames_[depth_ - 1].container->kind == Value::Kind::kObject;
    const TextFault fault = find_fault(text_, {.after = after_,
                                           .inside = depth_ == 0 ? Inside::kFile
                                                     : in_object ? Inside::kObject
                                                                 : Inside::kArray,
                                           .from = offset(event_),
                                           .last = offset(mark_),
                                           .lexer_message = why.what()});
    return fail(line_at(fault.offset), fault.sentence);
  }

 private:
  struct Frame {
    Value* container = nullptr;  // stays where it is while open: only the innermost container grows
    std::vector<int> key_lines;
  };

  std::size_t offset(const char* at) const { return static_cast<std::size_t>(at - text_.data()); }

  // The line on which the thing just read ended, and where the next begins: behind the mark, or at the mark
  // when the thing is a number, which is over only when the lexer has seen what follows it.
  int line_of_event(int behind_mark) {
    event_ = mark_ + behind_mark;
    lines_ += static_cast<int>(std::count(counted_, event_, '\n'));
    counted_ = event_;
    return lines_;
  }

  // Blank lines at the end do not count: a cut file is reported where its last text stands.
  int line_at(std::size_t offset) const {
    std::string_view before = text_.substr(0, offset);
    if (offset == text_.size()) before = before.substr(0, before.find_last_not_of(" \t\r\n") + 1);
    return 1 + static_cast<int>(std::ranges::count(before, '\n'));
  }

  bool add(Value::Kind kind, int behind_mark) {
    const int line = line_of_event(behind_mark);
    if (++values_ > limits_.values)
      return fail(line, fmt::format("expected at most {} values, found more", limits_.values));
    after_ = FaultContext::After::kValue;
    added_ = depth_ == 0 ? &root_ : &frames_[depth_ - 1].container->items.emplace_back();
    added_->kind = kind;
    added_->line = line;
    return true;
  }

  bool open(Value::Kind kind, FaultContext::After after) {
    if (!add(kind, 1)) return false;
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

  bool close() {
    --depth_;
    line_of_event(1);
    after_ = FaultContext::After::kValue;
    return true;
  }

  // Of a key of the innermost object: of those around it, the last key or item is open.
  std::string pointer_to(const std::string& key) const {
    std::string pointer;
    for (int i = 0; i + 1 < depth_; ++i) {
      const Value& around = *frames_[i].container;
      pointer += "/" + (around.kind == Value::Kind::kObject ? pointer_token(around.keys.back())
                                                            : std::to_string(around.items.size() - 1));
    }
    return pointer + "/" + pointer_token(key);
  }

  bool keys_differ() {
    const Frame& frame = frames_[depth_ - 1];
    const std::vector<std::string>& keys = frame.container->keys;
    const std::size_t repeated = find_repeated(keys, order_);
    if (repeated == keys.size()) return true;
    return fail(frame.key_lines[repeated], fmt::format("{}: expected each key once, found {} again",
                                                       shown_pointer(pointer_to(keys[repeated])),
                                                       json_excerpt(keys[repeated])));
  }

  bool fail(int line, std::string sentence) {
    failure_ = ParseFailure{line, std::move(sentence)};
    return false;
  }

  std::string_view text_;
  const DocumentLimits& limits_;
  Value& root_;
  std::optional<ParseFailure> failure_;

  const char* mark_;     // the last character that the lexer took; the end of the text when none was left
  const char* counted_;  // lines_ is the line here
  const char* event_;    // behind the last thing read
  int lines_ = 1;

  FaultContext::After after_ = FaultContext::After::kNothing;
  Value* added_ = nullptr;
  std::size_t values_ = 0;
  int depth_ = 0;
  std::vector<Frame> frames_;  // the first depth_ are open; the others keep their memory for the next
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::optional<ParseFailure> parse_value(std::string_view text, const DocumentLimits& limits, Value& root) {
  CHECK(limits.depth <= kDeepest, fmt::format("depth={}", limits.depth));
  if (text.size() > limits.bytes)
    return ParseFailure{1, fmt::format("expected at most {} bytes, found {}", limits.bytes, text.size())};
  return Builder(text, limits, root).parse();
}

Document parse_document(std::string_view text, std::string file, DocumentLimits limits) {
  Document document{.file = std::move(file), .root = {}};
  if (const auto failure = parse_value(text, limits, document.root))
    throw input_error(fmt::format("{}:{}: {}", document.file, failure->line, failure->sentence));
  return document;
}

}  // namespace moebius
