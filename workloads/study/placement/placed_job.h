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

// Those of ranks that stand one after the other (order "naive") on devices of the same places of every domain
// that they use (fills_like_domains); empty: they do not, or nothing is placed.
std::vector<std::int32_t> devices_alike(const Scenario& scenario);

// For TrainingJob::device_of_rank; none where the scenario places nothing. input_error for more ranks than a
// placement by volume lists (kMostPlacedRanks).
std::vector<std::int32_t> devices_of_ranks(const TrainingJob& job, const Scenario& scenario,
                                           const Document& document);

}  // namespace moebius
