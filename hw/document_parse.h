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

// Fills `root`, or says what is wrong with `text`; `root` is then of no use.
std::optional<ParseFailure> parse_value(std::string_view text, const DocumentLimits& limits, Value& root);

}  // namespace moebius
