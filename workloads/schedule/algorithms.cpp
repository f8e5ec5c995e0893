#include "workloads/schedule/algorithms.h"

#include <algorithm>

namespace moebius {

std::span<const AlgorithmRow> algorithm_rows() {
  using enum OpKind;
  static const std::vector<AlgorithmRow> rows{
      {Algorithm::kRing,
       "ring",
       {kAllReduce, kReduceScatter, kAllGather, kBroadcast, kAllToAll},
       "two ranks",
       "neighbour to neighbour, over all rails; a broadcast in chunks; an all-to-all in rounds"},
      {Algorithm::kTree,
       "tree",
       {kAllReduce, kBroadcast},
       "two ranks",
       "in chunks: up and down two binary trees of half the bytes each; a broadcast down one"},
      {Algorithm::kDirect,
       "direct",
       {kAllReduce, kReduceScatter, kAllGather, kAllToAll, kSend},
       "two ranks",
       "everyone to everyone at once, each over its own NIC; messages change rail at the spine, if there is "
       "one"},
      {Algorithm::kHierarchical,
       "hierarchical",
       {kAllReduce, kReduceScatter, kAllGather, kAllToAll},
       "several nodes of equally many ranks (elsewhere: ring, direct)",
       "inside nodes, then between them along the rails, then inside again"},
      {Algorithm::kInSwitch,
       "in-switch",
       {kAllReduce, kReduceScatter, kAllGather},
       "scale-up switches that reduce; of one rank a node: a network that reduces",
       "switches reduce and send to all (NVLS; between nodes SHARP, where the network reduces, else rings)"},
      {Algorithm::kRailLocal,
       "rail-local",
       {kAllToAll},
       "a scale-up link (elsewhere: direct)",
       "messages go to the receiver's rail inside the sending node and cross the network together (PXN)"},
  };
  return rows;
}

bool has_algorithm(OpKind kind, Algorithm algorithm) {
  if (algorithm == Algorithm::kAuto) return true;
  for (const AlgorithmRow& row : algorithm_rows()) {
    if (row.value == algorithm) return std::find(row.kinds.begin(), row.kinds.end(), kind) != row.kinds.end();
  }
  return false;
}

}  // namespace moebius
