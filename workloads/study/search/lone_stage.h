// A plan whose one stage is what a stage of another plan computes, for bounds that look at stages and layers by
// themselves.
#pragma once

#include "workloads/training/plan.h"

namespace moebius {

// Whether the schedule runs a forward beside a reverse pass.
bool runs_pairs(const TrainingPlan& plan);
// Whether reverse passes are never in two parts.
bool whole_reverse(PipelineKind kind);
// Reverse passes in two parts, none of them beside a forward pass.
bool split_alone(const TrainingPlan& plan);

// One stage on one pipeline rank: reverse passes in two parts where `plan` runs them so by themselves, whole
// ones elsewhere. Where passes run in pairs, the two parts compute what the whole one does.
TrainingPlan lone_stage(TrainingPlan plan);

}  // namespace moebius
