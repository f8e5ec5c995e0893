#include "viz/data/axis.h"

#include <algorithm>
#include <cmath>

namespace moebius::viz {
namespace {

double round_step(double length, double most) {
  const double rough = length / most, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

}  // namespace

AxisMarks axis_marks(double low, double high, double most) {
  if (!(low < high)) return {};
  const double step = round_step(high - low, most), first = std::ceil(low / step);
  const double count = std::ceil(high / step) - first;
  return {.step = step, .first = first, .count = count > 0 ? static_cast<int>(std::min(count, most + 1)) : 0};
}

}  // namespace moebius::viz
