// The wall clock, which no change of the date moves.
#pragma once

#include <chrono>

namespace moebius {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace moebius
