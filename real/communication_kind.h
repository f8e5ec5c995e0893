// Which part of a communication an op is, for all executors: each has a class with one function a kind.
#pragma once

#include <fmt/format.h>

#include "hw/error.h"
#include "models/op_kind.h"

namespace moebius {

// Calls member.dispatch(), combine(), all_reduce(), reduce_scatter(), all_gather(), broadcast(),
// all_to_all(), send(), receive() or copy_host(). CHECKs that the kind communicates.
template <class Member>
void communicate_as(OpKind kind, Member& member) {
  switch (kind) {
    case OpKind::kDispatch:
      return member.dispatch();
    case OpKind::kCombine:
      return member.combine();
    case OpKind::kAllReduce:
      return member.all_reduce();
    case OpKind::kReduceScatter:
      return member.reduce_scatter();
    case OpKind::kAllGather:
      return member.all_gather();
    case OpKind::kBroadcast:
      return member.broadcast();
    case OpKind::kAllToAll:
      return member.all_to_all();
    case OpKind::kSend:
      return member.send();
    case OpKind::kRecv:
      return member.receive();
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      return member.copy_host();
    case OpKind::kInput:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
    case OpKind::kNorm:
    case OpKind::kNormGrad:
    case OpKind::kRowMeans:
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
    case OpKind::kActivation:
    case OpKind::kActivationGrad:
    case OpKind::kGate:
    case OpKind::kGateGrad:
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
    case OpKind::kAdd:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
    case OpKind::kLargest:
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
    case OpKind::kCrossEntropyStats:
    case OpKind::kCrossEntropy:
    case OpKind::kAdam:
    case OpKind::kSumSquares:
    case OpKind::kCacheAppend:
    case OpKind::kPagedAttention:
    case OpKind::kIndexScores:
    case OpKind::kTopKeys:
    case OpKind::kAbsorbQueries:
    case OpKind::kAbsorbedValues:
    case OpKind::kConvolution:
    case OpKind::kDeltaRule:
    case OpKind::kLastRows:
    case OpKind::kGreedySample:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
      break;
  }
  CHECK(false, fmt::format("{} does not communicate", to_string(kind)));
}

}  // namespace moebius
