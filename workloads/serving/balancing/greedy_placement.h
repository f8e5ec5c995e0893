// A placement that is bettered where it stands, as long as what it saves is worth the weights that move.
#pragma once

#include <vector>

#include "workloads/serving/balancing/slot_loads.h"

namespace moebius {

struct MoveWorth {
  double saved = 0;  // seconds until the next placement, for each unit by which a layer's imbalance falls
  double moved = 0;  // seconds that it takes a rank to get the weights of one expert
};

// Changes, one after the other, the slots of one layer: two ranks, the fullest one and another, exchange an
// expert each, or a rank gives up a replica of an expert that has others and takes one more of an expert of
// the fullest rank. Of all such changes the one that lowers the fuller of the two ranks most, for each expert
// that moves, where that lowers the imbalance of the layer; none when what it saves is below what its moves
// take. Even split of tokens.
SlotExperts better_placement(const SlotExperts& now, const std::vector<double>& expert_loads, int ranks,
                             const MoveWorth& worth);

}  // namespace moebius
