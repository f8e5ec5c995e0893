// What software before fused kernels did in several passes over memory: the same numbers, read and written
// more often. An op of these kinds says so by Shape::heads.
#pragma once

#include "workloads/cost/cost_source.h"

namespace moebius {

// Shape::heads of kCrossEntropyStats, kCrossEntropy, kNorm, kNormGrad, kRowMeans, kAdam, the gate's, the
// permutations' and the grouped products' kinds
inline constexpr int kSeparateKernels = 1;
inline constexpr int kEagerKernels = 2;  // of the norms' kinds, kActivation, kActivationGrad, and Shape::k of
                                         // kRotary, kRotaryGrad: as PyTorch runs them operation by operation
inline constexpr int kAutocastKernels = 2;   // of the two of the loss: as PyTorch computes it under autocast
inline constexpr int kSeparateFromBf16 = 2;  // of kAdam whose gradients come in 16 bits
inline constexpr int kScaledApart = 2;       // added, of kAdam whose gradients are scaled down by their norm
inline constexpr int kSortedTwice = 2;       // of permutations: before and after rows travel
inline constexpr int kSortedTwiceFused = 3;  // the same, each time by one kernel
inline constexpr int kSeparateWithBias = 2;  // of grouped products: the bias of each expert is added apart
// Of grouped products whose experts are modules: a slice of the rows goes in, or the result comes out of one.
inline constexpr int kTakesSlices = 3, kWritesSlices = 4;
inline constexpr int kWithinExchange = 4;    // of permutations: rows are put and summed up as they come
// Of kActivationGrad, and of kAdd of gradients: a bias's gradient is a kernel that reads the result again.
inline constexpr int kSumsBias = 1;
// Of kNorm and kActivation that write 8-bit operands, added: of both, as kBothWays.
inline constexpr int kWithColumns = 4;
inline constexpr int kBothWays = 1;  // of kQuantise: two copies, with scales along rows and along columns

bool has_separate_kernels(const CostQuery& query);
// No kernel at all: what the op does is a part of dispatch or combine, and of their time.
bool is_within_exchange(const CostQuery& query);

// The sum over the kernels, each as `source` says of a pass that moves its bytes; per element:
// - the loss, as vocabulary-parallel cross entropy was written (Megatron-LM, cross_entropy.py):
//   kCrossEntropyStats copies to FP32 (2 in, 4 out), takes the maximum (4), subtracts it (4, 4),
//   exponentiates (4, 4), sums (4): 30 bytes; kCrossEntropy divides (4, 4), scales (4, 4) and copies back (4,
//   2): 22; of kAutocastKernels, which runs log_softmax and nll_loss in FP32 (PyTorch, "Automatic Mixed
//   Precision", ops that autocast to float32): kCrossEntropyStats copies to FP32 (2, 4) and takes the
//   log-softmax (4, 4): 14; kCrossEntropy fills nll_loss's gradient (4), takes the log-softmax's (4, 4, 4)
//   and copies back (4, 2): 22;
// - kNorm: 1.4 times as long, for a row is read again once its mean is known; kNormGrad: twice as long, for
// rows
//   are read again, and the norm's own gradient is a kernel that reads both operands too (6). NVIDIA/apex,
//   pull request 1037: 16,384 rows of 1,024 take 75.1 and 176.2 us on A100, 53.5 and 86.6 in kernels that
//   read once; of kOfSharedRows kRowMeans has read the rows for their means, so that kNorm takes no longer
//   and kNormGrad only by the kernel of the norm's own gradient, which reads both operands (4);
// - of kEagerKernels, as models written in PyTorch compose them (Llama's code, copied by most: RMSNorm and
//   rotation in FP32, SwiGLU as silu and product). kNorm copies to FP32 (2, 4), squares (4, 4), takes the
//   mean (4), scales rows (4, 4), copies back (4, 2) and weighs (2, 2): 36 bytes. kNormGrad weighs (2, 2),
//   takes the weights' own product (4, 2) and its sum (2), copies to FP32 (2, 4), scales rows (4, 4), takes
//   their product (8, 4) and its mean (4), that of the square (4, 4), adds both up (8, 4) and copies back
//   (4, 2): 68. Of kOfSharedRows kRowMeans has the kernels up to a mean (copy, square, mean: 18; back the
//   first weighing, the copy, the product and its mean: 26), kNorm and kNormGrad the rest (18, 42). kRotary
//   and its gradient copy to FP32 (2, 4), take the complex product (4, 4) and copy back (4, 2): 20.
//   kActivation takes silu (2, 2) and the product (4, 2): 10; its gradient both products (6, 6) and that of
//   silu (6): 18;
// - kAdam: gradients copied to FP32 where they are 16 bits (2, 4), unscaled and checked (4, 4), scaled down
// by
//   their norm where they are (4, 4), the op itself, weights copied from their masters (4; they are written
//   once either way);
// - kGate and kGateGrad, as Megatron-Core's router is written (core_v0.10, moe_utils.py and router.py, with a
//   capacity): the op itself and beside it 34 and 13 kernels over a token's scores, of which nothing but
//   their start is seen: choice (2), softmax and cast (2), masks of weights and of the map (6), choice by
//   capacity and its mask (6), both masks applied (2), tokens of an expert (1), the auxiliary loss (5),
//   splits (6), rows chosen by the map (4); back: of the masks, the softmax and the choice (7), of the
//   auxiliary loss (6);
// - kPermute, kUnpermute and their gradients: the op itself; rows times their weights in a pass (4), back the
//   product for the rows (4) and that for the weights (6) with its sum (2); sorted again where a rank has
//   several experts (4); forward 4 kernels that find which rows and weights these are; of kSortedTwiceFused
//   the op itself and the rows sorted again (4);
// - kQuantise of both ways, and kNorm and kActivation of kWithColumns: in proportion to the bytes, of which a
//   second copy is a third of those of one pass that quantises;
// - of kSumsBias the op itself, and a pass that reads its result for the sums of columns (2): gradients of
//   biases that are added behind the product, with the activation or the stream (Megatron-LM, skip_bias_add:
//   fused_bias_gelu.py and fused_bias_dropout.py return the gradient of the sum for the bias, too);
// - of kWithBiasApart the product, and of kGemm a pass that adds the bias (4), of kGemmWgrad one that reads
//   the result's gradient again (2): Megatron-LM since 2022 (tensor_parallel/layers.py: output + bias,
//   grad_output.sum(dim=0)); PyTorch's own F.linear sums it apart, and adds it behind the product until 1.10;
// - kGroupedGemm and its gradients: a dense product for each expert, one after the other, as Transformer
//   Engine's GroupedLinear does on a few streams (nvte_multi_stream_cublas_gemm); such products fill the
//   device; of kSeparateWithBias the rows of each expert get its bias, weighed by their routing weights, as
//   Megatron-Core writes it (experts.py, _apply_bias): the product in FP32 (4), the sum (6, 4), all experts'
//   rows in one (4, 4), copied back (4, 2): 28 bytes; back copies to FP32 (2, 4) and to the rows' type (4,
//   2), rows in one (2, 2), the products for the bias (4, 4) with its sum (4) and for the weights (4, 4) with
//   theirs (4): 40, beside the product that gives the rows' gradients;
//   Of kWritesSlices (Megatron-Core's SequentialMLP until 0.9: output_local[start:end] = output) a tensor of
//   zeros (2) is filled slice by slice (4); back autograd copies the whole gradient for each expert (4), and
//   of its slice makes a copy, zeros and a copy of these (10). Of kTakesSlices (rows[start:end]) nothing
//   forward; back each expert's gradient is copied (4) into zeros of all rows (2 for each expert), and these
//   are added up (6 for each but the first).
Cost separate_kernels_cost(const CostSource& source, const CostQuery& query);

}  // namespace moebius
