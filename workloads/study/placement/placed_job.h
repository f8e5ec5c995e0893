// The placement of a training scenario (/plan/placement) as the layout needs it.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/scenario/scenario.h"
#include "workloads/training/rank_placement.h"
#include "workloads/training/training.h"

namespace moebius {

// All devices of a cluster where the placement names none, ascending.
std::vector<std::int32_t> free_devices(const RankPlacement& placement, const Cluster& cluster);

// For TrainingJob::device_of_rank; none where the scenario places nothing. Errors are those of
// check_placement(), and of more ranks than a placement by volume lists (kMostPlacedRanks).
std::vector<std::int32_t> devices_of_ranks(const TrainingJob& job, const Scenario& scenario,
                                           const Document& document);

}  // namespace moebius
