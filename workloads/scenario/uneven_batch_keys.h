// /plan/dp/microbatches: replicas that take unequal numbers of microbatches.
#pragma once

#include "workloads/scenario/scenario.h"

namespace moebius {

void read_microbatches(Section& section, TrainingPlan& plan);

// What unequal numbers need of the rest of the plan and of the batch.
void check_microbatches(const Scenario& scenario, const Document& document);

}  // namespace moebius
