// Which rank stands on which device: placements of a job on the devices that are free, best first by the
// estimate of placement_cost.h.
//
// The ranks as they are numbered, and in the order that volume_partition.h gives, are laid over the devices
// in every order of device_orders.h. The best of these are improved by local search: two nodes exchange what
// stands on them, a node moves to free devices, and, where nodes are left in part, two ranks exchange theirs;
// what lowers the estimate is kept, and from where nothing does any more a few exchanges at random lead on.
// Of few nodes all ways to lay the blocks of the best placement over the free nodes are looked through by
// branch and bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/study/placement/placement_cost.h"

namespace moebius {

struct PlacementProblem {
  const Fabric& fabric;
  const std::vector<RankExchange>& exchanges;
  int ranks = 0;
  std::vector<std::int32_t> free;  // devices, ascending, at least as many
  int tp = 1;
  std::uint64_t seed = 1;
};

struct PlacedRanks {
  std::string how;
  std::vector<std::int32_t> device_of_rank;
  PlacementCost cost;
};

struct Placements {
  PlacedRanks naive;  // the first free devices in their order
  // Best first, estimates a thousandth apart and more; naive among them where it is.
  std::vector<PlacedRanks> best;
  std::int64_t tried = 0;  // placements that were estimated
  bool exact = false;      // no way to lay the blocks of ranks of best.front() over nodes is better
};

// `most`: of best.
Placements find_placements(const PlacementProblem& problem, int most);

}  // namespace moebius
