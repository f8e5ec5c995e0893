// /plan/dp/accumulate, reshard_after_forward, reshard_after_backward: what of sharded gradients and weights
// stands whole from microbatch to microbatch.
#pragma once

#include "workloads/scenario/scenario.h"

namespace moebius {

void read_resharding(Section& section, TrainingPlan& plan);

// What they need of ZeRO, of the number of microbatches, of the ranks and of the schedule.
void check_resharding(const Scenario& scenario, const Document& document);

}  // namespace moebius
