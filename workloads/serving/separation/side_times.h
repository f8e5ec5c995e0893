// What the two sides of an iteration do while it lasts, when experts stand apart from attention.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"
#include "workloads/schedule/timeline.h"
#include "workloads/serving/plan.h"

namespace moebius {

// Seconds of iterations, of the slowest rank of each side. What a side does not compute it waits.
struct SideTimes {
  double iteration = 0;
  double attention = 0, experts = 0;  // computing
  double to_experts = 0, back = 0;    // exchanges under way, hidden or not
  double microbatches = 0;

  SideTimes& operator+=(const SideTimes& other);
  SideTimes operator*(double factor) const;
};

// Of one iteration: `fragments` by class, submitted one after the other from `first_sequence` on. Takes its
// spans out of the timeline.
SideTimes take_side_times(Timeline& timeline, const ServingPlan& plan, const Layout& layout,
                          const std::vector<FragmentPtr>& fragments, std::int32_t first_sequence);

}  // namespace moebius
