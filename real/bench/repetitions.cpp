#include "real/bench/repetitions.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "hw/error.h"
#include "hw/stopwatch.h"

namespace moebius {
namespace {

bool precise(const OpMeasurement& so_far, double precision) {
  const double deviation = 2 * so_far.spread / 1.349;  // of one time, over the median
  return 1.253 * deviation / std::sqrt(static_cast<double>(so_far.repetitions)) < precision;
}

}  // namespace

double quantile(const std::vector<double>& sorted, double share) {
  CHECK(!sorted.empty(), std::string("a quantile of nothing"));
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

OpMeasurement summary_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  OpMeasurement all{.seconds = quantile(seconds, 0.5), .repetitions = static_cast<int>(seconds.size())};
  if (all.seconds > 0) all.spread = (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / 2 / all.seconds;
  return all;
}

OpMeasurement repeat(const StoppingRule& rule, const std::function<double()>& once) {
  const auto started = std::chrono::steady_clock::now();
  once();
  std::vector<double> seconds;
  const int least = std::max(rule.least, 1), most = std::max(rule.most, least);
  OpMeasurement so_far;
  while (static_cast<int>(seconds.size()) < most) {
    seconds.push_back(once());
    if (static_cast<int>(seconds.size()) < least) continue;
    so_far = summary_of(seconds);
    if (seconds_since(started) >= rule.most_seconds || precise(so_far, rule.precision)) break;
  }
  return so_far;
}

}  // namespace moebius
