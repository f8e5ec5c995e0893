// What ranks send each other in one step of training, group by group: read off the schedule itself, whose
// submissions are walked through without anyone carrying them out.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/training/training.h"

namespace moebius {

struct VolumeEdge {
  std::int32_t from = 0, to = 0;  // members of the group
  double bytes = 0;
};

struct RankExchange {
  GroupRole role = GroupRole::kNone;
  std::vector<std::int32_t> ranks;
  double calls = 0;               // ops of one member
  double around = 0;              // bytes that pass from one member of a ring to the next
  double between = 0;             // bytes from each member to each other
  std::vector<VolumeEdge> edges;  // messages, and tokens as their routes say
};

// At most so many ranks: every one is listed with its groups.
inline constexpr int kMostPlacedRanks = 4096;

// Groups of one are left out. All-reduce, reduce-scatter, all-gather and broadcast count as rings; tokens of
// dispatch and combine as the first route of the step has them.
std::vector<RankExchange> exchanges_of(const TrainingJob& job);

// Bytes that leave a member, over all members.
double total_bytes(const RankExchange& exchange);

}  // namespace moebius
