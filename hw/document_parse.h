// The parser behind parse_document and set_at_pointer: text in, values with lines or one sentence out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hw/document.h"

namespace moebius {

struct ParseFailure {
  int line = 0;          // 1-based
  std::string sentence;  // "expected ..., found ..."
};

// Fills `root`, which is null before, or says what is wrong with `text`; `root` is then of no use.
std::optional<ParseFailure> parse_value(std::string_view text, const DocumentLimits& limits, Value& root);

// The same by the slower lexer alone, which explains faults; what the fuzz test holds the faster one against.
std::optional<ParseFailure> parse_value_exactly(std::string_view text, const DocumentLimits& limits,
                                                Value& root);

}  // namespace moebius
