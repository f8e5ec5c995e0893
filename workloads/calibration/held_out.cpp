#include "workloads/calibration/held_out.h"

#include <algorithm>
#include <cmath>

namespace moebius {
namespace {

double as_written(double error) {
  return std::round(error * 1e4) / 1e4;
}

// At (i + 1/2) of so many, of sorted errors.
std::vector<double> quantiles_of(const std::vector<double>& errors) {
  std::vector<double> quantiles;
  for (std::size_t i = 0; i < kHeldOutQuantiles; ++i) {
    const std::size_t at = (2 * i + 1) * errors.size() / (2 * kHeldOutQuantiles);
    quantiles.push_back(std::log1p(errors[at]));
  }
  return quantiles;
}

}  // namespace

HeldOut held_out_of(std::vector<double> errors) {
  HeldOut held_out{.rows = static_cast<int>(errors.size())};
  if (errors.empty()) return held_out;
  std::sort(errors.begin(), errors.end());
  held_out.bias = as_written(errors[errors.size() / 2]);
  held_out.quantiles = quantiles_of(errors);
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  double sum = 0;
  for (const double error : errors) sum += error;
  held_out.mean = as_written(sum / static_cast<double>(errors.size()));
  held_out.worst = as_written(errors.back());
  held_out.median = as_written(errors[errors.size() / 2]);
  held_out.p90 = as_written(errors[errors.size() * 9 / 10]);
  return held_out;
}

}  // namespace moebius
