#include "workloads/cost/host_calls.h"

#include "models/layer_math.h"
#include "workloads/cost/separate_kernels.h"

namespace moebius {
namespace {

constexpr double kModule = 2.7, kProductBack = 2.4;
constexpr double kLowModule = 3;  // times that of BF16
constexpr double kExpert = 0.21, kExpertBack = 0.18, kExpertOfLoop = 1.1;
constexpr double kCollective = 5.6;
constexpr double kElementary = 0.4;
constexpr double kWithinCall = 0.06;
constexpr int kInBias = 5;  // of an expert: rows, weights, product, sum and what joins them
constexpr int kInRouter = 17, kInSeparateRouter = 58, kInExchange = 10, kInLibraryDispatch = 14,
              kInPermutation = 5;

double of_module(const Op& op, double calls) {
  return (element_bytes(op.dtype) < 2 ? kLowModule : 1) * calls;
}

// Of all experts that a product is of.
double of_experts(const Op& op, double calls) {
  const bool biased = op.shape.heads == kSeparateWithBias && op.kind != OpKind::kGroupedGemmWgrad;
  return op.shape.groups *
         ((op.shape.heads > 0 ? kExpertOfLoop : calls) + (biased ? kInBias * kElementary : 0));
}

bool goes_apart(const Op& op) {
  return op.kind == OpKind::kDispatch && op.algorithm == Algorithm::kLibrary;
}

// Tokens and their weights travel apart by the library's all-to-all.
double of_messages(const Op& op) {
  return (goes_apart(op) ? 2 : 1) * kCollective;
}

double of_exchange(const Op& op) {
  return of_messages(op) + (kInExchange + (goes_apart(op) ? kInLibraryDispatch : 0)) * kElementary;
}

}  // namespace

double host_calls(const Op& op) {
  switch (op.kind) {
    case OpKind::kGemm:
    case OpKind::kAttention:
      return of_module(op, kModule);
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
      return of_module(op, kProductBack);
    case OpKind::kAttentionGrad:
      return 2 * kProductBack;
    case OpKind::kGroupedGemm:
      return of_module(op, kModule) + of_experts(op, kExpert);
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
      return of_module(op, kProductBack) + of_experts(op, kExpertBack);
    case OpKind::kGate:
    case OpKind::kGateGrad:
      return (op.shape.heads == kSeparateKernels ? kInSeparateRouter : kInRouter) * kElementary;
    case OpKind::kDispatch:
    case OpKind::kCombine:
      return of_exchange(op);
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
    case OpKind::kRowMeans:
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kActivation:
    case OpKind::kActivationGrad:
    case OpKind::kAdd:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
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
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      return 1;
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
      return kCollective;
    case OpKind::kLargest:
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
      return 0;  // of the module whose operand it is
  }
  return 1;
}

int kernels_of(const Op& op) {
  return op.kind == OpKind::kDeltaRule && is_chunked(op.shape) ? kChunkedDeltaKernels : 1;
}

double kernel_calls(const Fragment& fragment, const Op& op) {
  const bool of_experts =
      op.role == Role::kExperts || op.role == Role::kExpertGateUp || op.role == Role::kExpertDown;
  const bool within = fragment.one_expert_call && of_experts && !is_communication(op.kind);
  return kernels_of(op) * (within && op.kind != OpKind::kPermute ? kWithinCall : 1);
}

bool travels_with_weights(const Op& op) {
  return (op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine) && op.num_inputs == 2;
}

double prepared_calls(const Op& op) {
  return of_messages(op);
}

bool host_reads_counts(const Op& op) {
  return op.kind == OpKind::kDispatch && op.num_inputs == 2;
}

}  // namespace moebius
