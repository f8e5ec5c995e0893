// The keys of a training plan that say where its state stands and in which formats: data parallelism with
// ZeRO, number formats, activations that are computed again, host memory. And what must hold between them.
#pragma once

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

void read_data_parallelism(Section section, TrainingPlan& plan);
void read_precision(Section section, TrainingPlan& plan);
void read_recompute(Section section, TrainingPlan& plan);
void read_offload(Section section, TrainingPlan& plan);

// After the degrees are settled. Sets what hybrid recomputation is weighed by.
void check_plan_state(Scenario& scenario, const Document& document);

}  // namespace moebius
