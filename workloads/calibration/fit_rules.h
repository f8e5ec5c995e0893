// What all fits of corrections to measured rows hold to, and the digits that their values are written with.
#pragma once

#include <cmath>
#include <cstddef>

namespace moebius {

inline constexpr std::size_t kLeastRowsToTest = 10;  // of fewer none are kept out
inline constexpr int kMostSweeps = 25;               // over all corrections
inline constexpr double kLeastShare = 0.05;  // of a row's time that a value must carry to be told by it
inline constexpr double kPrior = 0.2;  // weight of the nearest row's own correction beside rows of weight one
inline constexpr double kMostLossOfRow = 0.3;  // a single bad one shall not draw points to itself

// To so many significant digits; of values above 0.
inline double rounded(double value, int digits) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - (digits - 1));
  return std::round(value / unit) * unit;
}

}  // namespace moebius
