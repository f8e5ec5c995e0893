// Makes a Value of the events of a lexer, and stops at what a lexer lets through: repeated keys, limits,
// numbers that are too small.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/document.h"
#include "hw/document_fault.h"
#include "hw/document_parse.h"

namespace moebius {

// Each event says where the thing ended that was just read, or a place on that line where no fault can follow;
// false: no more is wanted, failure() says why.
class DocumentBuilder {
 public:
  DocumentBuilder(std::string_view text, const DocumentLimits& limits, Value& root)
      : text_(text), limits_(limits), root_(root), counted_(text.data()), event_(text.data()) {}

  bool null(const char* end) { return add(Value::Kind::kNull, end); }
  bool boolean(bool value, const char* end);
  bool integer(std::int64_t value, const char* end);
  bool number(double value, std::string_view token, const char* end);
  bool string(std::string_view value, const char* end);
  bool key(std::string_view name, const char* end);
  bool start_object(const char* end) {
    return open(Value::Kind::kObject, FaultContext::After::kObjectStart, end);
  }
  bool start_array(const char* end) {
    return open(Value::Kind::kArray, FaultContext::After::kArrayStart, end);
  }
  bool end_object(const char* end) { return keys_differ() && close(end); }
  bool end_array(const char* end) { return close(end); }
  // The lexer could not go on: the last character that it took, and what it says.
  bool fault(const char* last, std::string_view lexer_message);

  const std::optional<ParseFailure>& failure() const { return failure_; }

 private:
  struct Frame {
    Value* container = nullptr;  // stays where it is while open: only the innermost container grows
    std::vector<int> key_lines;
  };

  std::size_t offset(const char* at) const { return static_cast<std::size_t>(at - text_.data()); }
  int line_of_event(const char* end);
  int line_at(std::size_t offset) const;
  bool add(Value::Kind kind, const char* end);
  bool open(Value::Kind kind, FaultContext::After after, const char* end);
  bool close(const char* end);
  std::string pointer_to(const std::string& key) const;
  bool keys_differ();
  bool fail(int line, std::string sentence);

  std::string_view text_;
  const DocumentLimits& limits_;
  Value& root_;
  std::optional<ParseFailure> failure_;

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

}  // namespace moebius
