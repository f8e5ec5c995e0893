// The phases of a step of reinforcement learning beside its training, each a job of its own on the same
// cluster. They take turns: each begins when the one before has ended on all ranks, and has the devices'
// memory to itself.
#pragma once

#include <vector>

#include "workloads/job.h"
#include "workloads/training/reinforcement.h"

namespace moebius {

// The scenarios of the phases of `scenario`, which is that of `document` and has `rl`: rollout (where it is
// served), reference, reward model, sync, in this order. What one of them refuses is said with its phase
// behind the file's name. `unfold`: as Changes has it.
std::vector<JobPhase> phases_of(const Document& document, const Scenario& scenario, const Library& library,
                                bool unfold);

// Of the whole step; `seconds` has the time of each phase, `training_s` that of one training step.
ReinforcementFigures reinforcement_figures(const Scenario& scenario, const std::vector<PhaseTime>& phases,
                                           double training_s);

}  // namespace moebius
