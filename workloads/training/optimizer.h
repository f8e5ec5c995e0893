// What happens to gradients once a microbatch's reverse pass is the last: sums over replicas, Adam, and the way back of
// sharded weights (ZeRO-1, Rajbhandari et al. 2020).
#pragma once

#include <span>

#include "workloads/training/backward.h"

namespace moebius {

// Reduces the gradients of `parameters` over their replicas, in one operation for dense and one for expert parameters, on
// the data-parallel lane. Parameters that tensor-parallel ranks hold whole are summed over that group first.
void write_gradient_reduction(FragmentBuilder& builder, const LoweringInput& input,
                              std::span<const StageParameter> parameters);

// The fragment that ends a step: reduction of what `reduced` does not cover, the tied embedding, Adam, gathering of weights.
// `parameters` are those of the stage, the first `reduced` of which are reduced already.
FragmentPtr lower_optimizer(const LoweringInput& input, const StageSpec& stage,
                            std::span<const StageParameter> parameters, std::size_t reduced);

}  // namespace moebius
