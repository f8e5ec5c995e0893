// What decides how a stage is lowered and what it takes, as text: equal keys, equal stages.
#pragma once

#include <string>

#include "workloads/training/layers/lowering.h"

namespace moebius {

// Everything that lowering a stage reads of a plan; what only places ranks or orders passes is left out.
std::string lowering_key(const TrainingPlan& plan, const TrainingWorkload& workload);
// Whether what layers take and hold can be told of each by itself: not where recomputation chooses among them
// or computes one again from the one before.
bool layers_stand_alone(const TrainingPlan& plan);
// Which ranks of a plan meet.
std::string groups_key(const TrainingPlan& plan);
// The layers of a stage, and what stands beside it.
std::string stage_key(const Model& model, const StageSpec& spec);

}  // namespace moebius
