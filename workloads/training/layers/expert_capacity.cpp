// How many of a rank's tokens an expert takes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "workloads/training/layers/lowering.h"

namespace moebius {

ExpertCapacity capacity_of(const TrainingPlan& plan, const Experts& experts, std::int64_t tokens,
                           std::int64_t sequences) {
  if (plan.capacity == 0) return {};
  constexpr double kRounding = 1e-12;  // 100 x 1.1 are 110
  ExpertCapacity capacity;
  if (plan.capacity_of_sequence) capacity.groups = static_cast<int>(std::min(tokens, sequences));
  const std::int64_t of_group = (tokens + capacity.groups - 1) / capacity.groups;
  const double mean = static_cast<double>(of_group * experts.active) / experts.routed;
  constexpr double kMostRows = std::numeric_limits<int>::max();
  capacity.rows =
      static_cast<int>(std::min(kMostRows, std::ceil(mean * plan.capacity * (1 - kRounding))));
  return capacity;
}

}  // namespace moebius
