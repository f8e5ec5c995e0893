#include "workloads/schedule/pass_times.h"

#include <algorithm>
#include <utility>

namespace moebius {

PassTimes::PassTimes(std::vector<std::int32_t> class_sizes)
    : sizes_(std::move(class_sizes)), sums_(sizes_.size()) {}

void PassTimes::finished(std::int32_t rank_class, const Pass& pass, Time end) {
  Sums& sums = sums_[rank_class];
  const std::int64_t lasted = pass.start < pass.end ? (pass.end - pass.start).ns : 0;
  switch (pass.phase) {
    case Phase::kForward:
      sums.forward += lasted;
      break;
    case Phase::kBackward:
      (pass.pair ? sums.overlapped : sums.backward) += lasted;
      break;
    case Phase::kWeight:
      sums.weight += lasted;
      break;
    case Phase::kGradients:
    case Phase::kOptimizer:
      sums.optimizer += (end - std::min(end, sums.last_end)).ns;
      sums.last_end = std::max(sums.last_end, end);
      return;
  }
  sums.last_end = std::max(sums.last_end, pass.end);
}

PassSeconds PassTimes::seconds(Time makespan) const {
  PassSeconds mean;
  double ranks = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const auto add = [&](double& to, std::int64_t ns) { to += sizes_[i] * Time{ns}.seconds(); };
    add(mean.forward, sums_[i].forward);
    add(mean.backward, sums_[i].backward);
    add(mean.weight, sums_[i].weight);
    add(mean.overlapped, sums_[i].overlapped);
    add(mean.optimizer, sums_[i].optimizer);
    ranks += sizes_[i];
  }
  for (double* part : {&mean.forward, &mean.backward, &mean.weight, &mean.overlapped, &mean.optimizer})
    *part /= std::max(ranks, 1.0);
  const double passes = mean.forward + mean.backward + mean.weight + mean.overlapped + mean.optimizer;
  mean.between = std::max(0.0, makespan.seconds() - passes);
  return mean;
}

}  // namespace moebius
