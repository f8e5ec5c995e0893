// The least memory that a plan fills, from the stages of one that differs from it in shards and host memory
// alone.
#pragma once

#include "workloads/study/search/step_bound.h"

namespace moebius {

// `facts` and `step` are those of the plan with zero 0 and no state but activations on the host: each copy of what `plan`
// shards is cut over all that hold it, what it keeps on the host takes nothing. Bytes of the fullest rank.
double held_at_least(const PlanFacts& facts, const StepBound& step, const TrainingPlan& plan);

// Of what a stage holds for the whole run, the part of `plan`.
double state_at_least(const ChunkFacts::Held& held, const TrainingPlan& plan, bool experts);

// Of the plan that the facts are of.
double held(const PlanFacts& facts, const StepBound& step);

}  // namespace moebius
