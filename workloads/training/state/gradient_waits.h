// What the ops of an optimizer wait for in the passes before it.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedule/fragment.h"
#include "workloads/training/plan.h"

namespace moebius {

struct IssuedPass {
  std::int32_t sequence = 0;
  FragmentPtr fragment;
};

// `reductions`: the passes of the step that complete gradients, whose sums may still travel when they have
// computed; `last`: of all passes. Frameworks update when all sums are there. Where something comes from the
// host for updates, each waits for its own gradients; what comes, and the sums that are left, for the last
// pass to have computed.
void wait_for_gradients(const TrainingPlan& plan, const std::vector<IssuedPass>& reductions,
                        const IssuedPass& last, Submission& optimizer);

}  // namespace moebius
