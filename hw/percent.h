// Shares as columns of tables show them.
#pragma once

#include <string>

#include <fmt/format.h>

namespace moebius {

inline std::string percent(double share) {  // 0.1234 -> "12.3"; the sign is for who prints it
  return fmt::format("{:.1f}", 100 * share);
}

}  // namespace moebius
