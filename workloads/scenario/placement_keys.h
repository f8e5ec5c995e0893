// `placement` of a training plan: on which devices its ranks stand. It decides the layout and nothing of the
// schedule, so it is no part of TrainingPlan.
#pragma once

#include "workloads/scenario/scenario_parts.h"
#include "workloads/training/rank_placement.h"

namespace moebius {

void read_placement(Section section, const Scenario& scenario);

// As read, from the scenario's settings; nothing for a scenario that says nothing of it.
RankPlacement placement_of(const Scenario& scenario);

// Those that ranks may stand on: all of the pools, or as many as the placement names.
std::int64_t devices_for_ranks(const Scenario& scenario);

// Against the settled degrees: enough devices, a device of its own for each rank, one kind of chip.
void check_placement(const RankPlacement& placement, const Scenario& scenario, const Document& document);

}  // namespace moebius
