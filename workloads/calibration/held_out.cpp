#include "workloads/calibration/held_out.h"

#include <algorithm>
#include <cmath>

namespace moebius {
namespace {

double as_written(double error) {
  return std::round(error * 1e4) / 1e4;
}

}  // namespace

HeldOut held_out_of(std::vector<double> errors) {
  HeldOut held_out{.rows = static_cast<int>(errors.size())};
  if (errors.empty()) return held_out;
  double sum = 0;
  for (const double error : errors) sum += error;
  std::sort(errors.begin(), errors.end());
  held_out.mean = as_written(sum / static_cast<double>(errors.size()));
  held_out.worst = as_written(errors.back());
  held_out.median = as_written(errors[errors.size() / 2]);
  held_out.p90 = as_written(errors[errors.size() * 9 / 10]);
  return held_out;
}

}  // namespace moebius
