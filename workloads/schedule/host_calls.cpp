#include "workloads/schedule/host_calls.h"

#include "models/layer_math.h"

namespace moebius {
namespace {

constexpr double kModule = 2.7, kProductBack = 2.4;
constexpr double kExpert = 0.21, kExpertBack = 0.18;
constexpr double kElementary = 0.4;
constexpr int kInRouter = 10, kInExchange = 10, kInPermutation = 5;

}  // namespace

double host_calls(const Op& op) {
  switch (op.kind) {
    case OpKind::kGemm:
    case OpKind::kAttention:
      return kModule;
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
      return kProductBack;
    case OpKind::kAttentionGrad:
      return 2 * kProductBack;
    case OpKind::kGroupedGemm:
      return kModule + op.shape.groups * kExpert;
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
      return kProductBack + op.shape.groups * kExpertBack;
    case OpKind::kGate:
    case OpKind::kGateGrad:
      return kInRouter * kElementary;
    case OpKind::kDispatch:
    case OpKind::kCombine:
      return kInExchange * kElementary;
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
      return kInPermutation * kElementary;
    case OpKind::kDeltaRule:
      return kernels_of(op);
    case OpKind::kInput:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kNorm:
    case OpKind::kNormGrad:
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kActivation:
    case OpKind::kActivationGrad:
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
    case OpKind::kLastRows:
    case OpKind::kGreedySample:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      return 1;
  }
  return 1;
}

int kernels_of(const Op& op) {
  return op.kind == OpKind::kDeltaRule && is_chunked(op.shape) ? kChunkedDeltaKernels : 1;
}

bool host_reads_counts(const Op& op) {
  return op.kind == OpKind::kDispatch && op.num_inputs == 2;
}

}  // namespace moebius
