// The exact part of a search for placements: blocks of ranks, a node's each, over free nodes.
#pragma once

#include <optional>

#include "workloads/study/placement/placement.h"

namespace moebius {

inline constexpr int kMostExactBlocks = 8;

struct BlockSearch {
  PlacedRanks best;
  std::int64_t tried = 0;
};

// The least PlacementCost::seconds over all ways to lay the blocks of `start` over the free nodes, by branch
// and bound: the estimate of the blocks that stand already is a lower bound of the whole. Nodes of one leaf
// that hold nothing yet stand for each other. Nothing where the free nodes are not whole and alike, where
// blocks are more than kMostExactBlocks, or when it would take more than `most` estimates.
std::optional<BlockSearch> search_blocks(const PlacementProblem& problem, const PlacedRanks& start,
                                         std::int64_t most, CommunicationLoads& loads);

}  // namespace moebius
