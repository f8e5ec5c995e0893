// Ranks in parts that send each other much and others little: first those of a node, then, each of these
// taken as one, the nodes of a leaf. Each level is filled part after part by whoever sends most to what is
// there, and refined by swaps between parts for as long as they help (Kernighan and Lin 1970).
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/study/placement/volumes.h"

namespace moebius {

// How many ranks each node takes, one after the other, and how many of these nodes stand on one leaf.
struct PartSizes {
  std::vector<int> nodes;
  std::vector<int> leaves;
};

// The ranks in the order in which they fill the nodes. Leaves are looked at where all nodes take equally
// many.
std::vector<std::int32_t> order_by_volume(const std::vector<RankExchange>& exchanges, int ranks,
                                          const PartSizes& sizes);

}  // namespace moebius
