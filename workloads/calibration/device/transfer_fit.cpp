#include "workloads/calibration/device/transfer_fit.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "hw/error.h"
#include "hw/stopwatch.h"

namespace moebius {
namespace {

constexpr std::size_t kLeastTimes = 3, kMostTimes = 1000;

// Weights 1/y^2 make the squares those of relative errors.
struct WeightedSums {
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;

  explicit WeightedSums(const TransferCurve& curve) {
    for (std::size_t i = 0; i < curve.bytes.size(); ++i) {
      const double weight = 1 / (curve.seconds[i] * curve.seconds[i]);
      w += weight;
      x += weight * curve.bytes[i];
      y += weight * curve.seconds[i];
      xx += weight * curve.bytes[i] * curve.bytes[i];
      xy += weight * curve.bytes[i] * curve.seconds[i];
    }
  }
  double slope() const { return (w * xy - x * y) / (w * xx - x * x); }
  double slope_through_zero() const { return xy / xx; }
};

void add_point(TransferCurve& curve, double bytes, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t count = seconds.size();
  const double median = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
  curve.bytes.push_back(bytes);
  curve.seconds.push_back(median);
  curve.spread.push_back((seconds[count * 3 / 4] - seconds[count / 4]) / 2 / median);
}

}  // namespace

void fit_line(TransferCurve& curve) {
  CHECK(!curve.bytes.empty(), curve.name);
  const WeightedSums sums(curve);
  double slope = curve.bytes.size() > 1 ? sums.slope() : 0;
  curve.latency = slope > 0 ? (sums.y - slope * sums.x) / sums.w : 0;
  if (slope <= 0 || curve.latency < 0) {
    curve.latency = 0;
    slope = sums.slope_through_zero();
  }
  curve.rate = 1 / slope;
  std::vector<double> errors;
  for (std::size_t i = 0; i < curve.bytes.size(); ++i)
    errors.push_back(std::abs((curve.latency + curve.bytes[i] * slope) / curve.seconds[i] - 1));
  std::sort(errors.begin(), errors.end());
  curve.fit_error = errors[errors.size() / 2];
}

TransferCurve measure_transfers(const TransferSweepPlan& plan,
                                const std::function<double(double bytes)>& once) {
  TransferCurve curve;
  curve.name = plan.name;
  const double share = plan.seconds / static_cast<double>(plan.bytes.size());
  for (const double bytes : plan.bytes) {
    const auto start = std::chrono::steady_clock::now();
    once(bytes);
    std::vector<double> seconds;
    while (seconds.size() < kLeastTimes || (seconds.size() < kMostTimes && seconds_since(start) < share))
      seconds.push_back(std::max(1e-9, once(bytes)));
    add_point(curve, bytes, std::move(seconds));
  }
  fit_line(curve);
  return curve;
}

}  // namespace moebius
