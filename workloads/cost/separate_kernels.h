// What software before fused kernels did in several passes over memory: the same numbers, read and written
// more often. An op of these kinds says so by Shape::heads.
#pragma once

#include "workloads/cost/cost_source.h"

namespace moebius {

inline constexpr int kSeparateKernels =
    1;  // Shape::heads of kCrossEntropyStats, kCrossEntropy, kNormGrad, kAdam
inline constexpr int kSeparateFromBf16 = 2;  // of kAdam whose gradients come in 16 bits

bool has_separate_kernels(const CostQuery& query);

// The sum over the kernels, each as `source` says of a pass that moves its bytes; per element:
// - the loss, as vocabulary-parallel cross entropy was written (Megatron-LM, cross_entropy.py):
// kCrossEntropyStats
//   copies to FP32 (2 in, 4 out), takes the maximum (4), subtracts it (4, 4), exponentiates (4, 4), sums (4):
//   30 bytes; kCrossEntropy divides (4, 4), scales (4, 4) and copies back (4, 2): 22;
// - kNormGrad: the op itself, and a kernel that reads both operands again (4);
// - kAdam: gradients copied to FP32 where they are 16 bits (2, 4), unscaled and checked (4, 4), their norm
// (4), scaled
//   by it (4, 4), the op itself, weights copied from their masters (4; they are written once either way).
Cost separate_kernels_cost(const CostSource& source, const CostQuery& query);

}  // namespace moebius
