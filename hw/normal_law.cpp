#include "hw/normal_law.h"

#include <cmath>

namespace moebius {

double normal_quantile(double above) {
  double low = -10, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > above ? low : high) = middle;
  }
  return (low + high) / 2;
}

double expected_largest(int count) {
  return normal_quantile((1 - 0.375) / (count + 0.25));
}

}  // namespace moebius
