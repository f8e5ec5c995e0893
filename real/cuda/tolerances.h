// How far an op's result on a device may lie from the host executor's, given equal operands. Both round at
// the same places, to the format of each tensor that an op writes, and nowhere else; between them lie only
// the order of sums and the last places of elementary functions. The one table of it: tests compare op by op
// against it.
#pragma once

#include <cmath>

#include "models/op_kind.h"
#include "real/cuda/storage.h"

namespace moebius::cuda {

enum class Closeness : std::uint8_t {
  kEqual,       // moved, or added up by the same FP32 additions in the same order: the same bits
  kElementary,  // exp, erf, sin, sqrt and a row's sum in FP64 or FP32: a few last places of FP32
  kSum,         // an FP32 sum over rows, columns or keys in another order
};

constexpr Closeness closeness_of(OpKind kind) {
  switch (kind) {
    case OpKind::kInput:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:  // token by token, as the host
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:  // a row's copies in the order of experts
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
    case OpKind::kAdd:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:  // heads in order
    case OpKind::kLargest:
    case OpKind::kQuantise:  // quotients in FP64, as the host
    case OpKind::kTransposeQuantise:
    case OpKind::kCacheAppend:
    case OpKind::kTopKeys:
    case OpKind::kLastRows:
    case OpKind::kGreedySample:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
    case OpKind::kDispatch:
    case OpKind::kCombine:  // members in order
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      return Closeness::kEqual;
    case OpKind::kNorm:
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kActivation:
    case OpKind::kActivationGrad:
    case OpKind::kGate:
    case OpKind::kGateGrad:
    case OpKind::kCrossEntropyStats:
    case OpKind::kCrossEntropy:
    case OpKind::kAdam:
      return Closeness::kElementary;
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
    case OpKind::kSumSquares:
    case OpKind::kRowMeans:
    case OpKind::kNormGrad:  // the weight's gradient sums over rows
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
    case OpKind::kPagedAttention:
    case OpKind::kIndexScores:
    case OpKind::kAbsorbQueries:
    case OpKind::kAbsorbedValues:
    case OpKind::kConvolution:
    case OpKind::kDeltaRule:
      return Closeness::kSum;
  }
  return Closeness::kEqual;
}

// Of an element, before it is stored, relative to the root mean square of the tensor. 2^-24 is half a last
// place of FP32. Elementary functions of CUDA are right to 2 of them and a formula chains some ten
// (cancellation in gate_grad and gated gradients included): 2^-19. A sum of n terms of random sign loses
// 2^-24 * sqrt(n) of its own size, and n is below 2^14 here: 2^-17.
constexpr double relative_error(Closeness closeness) {
  switch (closeness) {
    case Closeness::kEqual:
      return 0;
    case Closeness::kElementary:
      return 0x1p-19;
    case Closeness::kSum:
      return 0x1p-17;
  }
  return 0;
}

// Products on tensor cores, cuBLASLt's and ours: they align the products of a step before they add and cut
// what falls off, so that FP32 sums keep some 13 bits less than a term's size allows in the worst order.
inline constexpr double kTensorCoreError = 0x1p-11;
// Of 8 bits: within a step they keep 13 bits behind the largest term's first (DeepSeek-V3, arXiv 2412.19437,
// section 3.3.2, measured "around 14 bits" on Hopper). A block of 128 takes four steps on a sum of up to some
// four times the block's root mean square, each cut by less than 2^-13 of it, before it goes on in FP32.
inline constexpr double kEightBitError = 0x1p-9;

// Attention on tensor cores: exponentials of scores (backward: their gradients too) are rounded to BF16, by
// at most 2^-9 of each, before they weigh values, keys or queries. A result, a sum of such terms, errs by
// 2^-9 / sqrt(3) of the size of its own sum in the mean and by less than 5 times that among some 10^5; and
// the sums of the first keys, which many queries see, are up to 4 times the root mean square of all: below
// 2^-5.
inline constexpr double kFlashError = 0x1p-5;

// A sum over members by NCCL, in whatever order, relative to the sum of the terms' magnitudes: each of the
// additions rounds to the format that travels, by half a step at most, a partial sum that is no larger than
// that. (Own sums are of FP32 and are rounded once.)
constexpr double nccl_sum_error(Storage storage, int members) {
  return (members - 1) * (storage == Storage::kBf16 ? 0x1p-8 : 0x1p-24);
}

// What rounding to the format adds when two values that near each other fall on different sides of a tie: one
// step.
constexpr double storage_step(Storage storage) {
  switch (storage) {
    case Storage::kFp32:
      return 0x1p-23;
    case Storage::kBf16:
      return 0x1p-7;
    case Storage::kFp8Rows:
    case Storage::kFp8Columns:
    case Storage::kFp8Blocks:
      return 0x1p-3;
  }
  return 0;
}

// Whether a stored value is near enough to the host's. `rms` is of the host's tensor.
inline bool near_enough(float found, float expected, double rms, double relative, Storage storage) {
  if (relative == 0) return found == expected;
  return std::abs(static_cast<double>(found) - expected) <=
         relative * rms + storage_step(storage) * std::abs(expected);
}

}  // namespace moebius::cuda
