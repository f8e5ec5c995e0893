#include "workloads/schedule/steady_timer.h"

#include <algorithm>

namespace moebius {
namespace {

constexpr int kMostRuns = 8;  // two or three do: repeat() finds the clocks of work whose mix stays

}  // namespace

double SteadyTimer::once(const std::function<void(Executor&)>& submit) {
  submit(executor_);
  const Time begun = end_;
  end_ = std::max(end_, executor_.finish());
  return (end_ - begun).seconds();
}

double SteadyTimer::seconds(const std::function<void(Executor&)>& submit) {
  if (clocks_ == nullptr) return once(submit);
  clocks_->forget();
  double seconds = once(submit);
  for (int runs = 1; runs < kMostRuns && clocks_->repeat(); ++runs) seconds = once(submit);
  return seconds;
}

}  // namespace moebius
