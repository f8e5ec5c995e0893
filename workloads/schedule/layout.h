// The ranks of a run: which of them do the same work (rank classes), and the groups in which they meet. A folded layout
// has one class for many ranks and simulates one of them; an unfolded one has a class for each rank.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/schedule/op.h"

namespace moebius {

struct Group {
  std::vector<std::int32_t> ranks;  // in group order; empty: this class is in no such group
  std::int32_t my_index = 0;        // of the class's representative
  std::int32_t num_classes = 1;     // distinct classes among the members: so many ops must meet
};

struct RankClass {
  std::vector<std::int32_t> ranks;  // ascending; ranks[0] represents the class
  std::array<Group, kNumGroupRoles> groups;

  std::int32_t representative() const { return ranks.front(); }
  std::int32_t size() const { return static_cast<std::int32_t>(ranks.size()); }
  const Group& group(GroupRole role) const { return groups[static_cast<int>(role)]; }
};

// The group that shares out a step's batch: those who hold the same parameters, unless some of these read the same part.
inline GroupRole batch_role(const RankClass& rank_class) {
  return rank_class.group(GroupRole::kBatch).ranks.empty() ? GroupRole::kData : GroupRole::kBatch;
}

struct Layout {
  std::int32_t ranks = 0;
  std::vector<RankClass> classes;
  std::vector<std::int32_t> class_of_rank;
  std::vector<std::int32_t> device_of_rank;  // placement
  std::vector<double> pace_of_class = {};    // at which its chip computes, against its kind; none: 1
};

}  // namespace moebius
