// Text without the blanks around it.
#pragma once

#include <string_view>

namespace moebius {

// A view into `text`; `blanks` are the characters that count as such.
inline std::string_view trimmed(std::string_view text, std::string_view blanks = " ") {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

}  // namespace moebius
