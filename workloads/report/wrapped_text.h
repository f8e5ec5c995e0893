// Text of reports as terminals show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace moebius {

inline constexpr std::size_t kTextColumns = 120;

std::size_t text_width(std::string_view text);  // of UTF-8: each character counts once

// Lines beyond so many columns go on in further ones: below the value, where they begin with a name and two
// spaces or more behind it, else two columns further in than they begin. Only single spaces are broken at, so
// that columns of tables stay together; a word that is longer stays whole.
std::string wrapped(std::string_view text, std::size_t columns = kTextColumns);

}  // namespace moebius
