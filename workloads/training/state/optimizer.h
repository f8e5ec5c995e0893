// What happens to gradients once a microbatch's reverse pass is the last: sums over replicas, Adam, and the
// way back of sharded weights (ZeRO-1, Rajbhandari et al. 2020).
#pragma once

#include <vector>

#include "workloads/training/layers/backward.h"

namespace moebius {

// Sums the gradients that are not `reduced` yet over their replicas, on the data-parallel lane, and marks
// them. The embedding and the head, to which several blocks add, wait until `all`. Parameters that
// tensor-parallel ranks hold whole are summed over that group first.
void write_gradient_reduction(FragmentBuilder& builder, const LoweringInput& input,
                              std::vector<StageParameter>& parameters, bool all);

// The fragment that ends a step, not yet frozen: the reductions that are left, the tied embedding, Adam,
// gathering of weights.
FragmentBuilder lower_optimizer(const LoweringInput& input, const StageSpec& stage,
                                std::vector<StageParameter> parameters);

}  // namespace moebius
