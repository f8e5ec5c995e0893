#include "models/op_kind.h"

namespace moebius {

std::string_view to_string(OpKind kind) {
  switch (kind) {
    case OpKind::kInput:
      return "input";
    case OpKind::kEmbedding:
      return "embedding";
    case OpKind::kEmbeddingGrad:
      return "embedding_grad";
    case OpKind::kGemm:
      return "gemm";
    case OpKind::kGemmDgrad:
      return "gemm_dgrad";
    case OpKind::kGemmWgrad:
      return "gemm_wgrad";
    case OpKind::kGroupedGemm:
      return "grouped_gemm";
    case OpKind::kGroupedGemmDgrad:
      return "grouped_gemm_dgrad";
    case OpKind::kGroupedGemmWgrad:
      return "grouped_gemm_wgrad";
    case OpKind::kNorm:
      return "norm";
    case OpKind::kNormGrad:
      return "norm_grad";
    case OpKind::kRotary:
      return "rotary";
    case OpKind::kRotaryGrad:
      return "rotary_grad";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kAttentionGrad:
      return "attention_grad";
    case OpKind::kActivation:
      return "activation";
    case OpKind::kActivationGrad:
      return "activation_grad";
    case OpKind::kGate:
      return "gate";
    case OpKind::kGateGrad:
      return "gate_grad";
    case OpKind::kPermute:
      return "permute";
    case OpKind::kPermuteGrad:
      return "permute_grad";
    case OpKind::kUnpermute:
      return "unpermute";
    case OpKind::kUnpermuteGrad:
      return "unpermute_grad";
    case OpKind::kAdd:
      return "add";
    case OpKind::kSplit:
      return "split";
    case OpKind::kConcat:
      return "concat";
    case OpKind::kMlaKeys:
      return "mla_keys";
    case OpKind::kMlaKeysGrad:
      return "mla_keys_grad";
    case OpKind::kQuantise:
      return "quantise";
    case OpKind::kTransposeQuantise:
      return "transpose_quantise";
    case OpKind::kCrossEntropyStats:
      return "cross_entropy_stats";
    case OpKind::kCrossEntropy:
      return "cross_entropy";
    case OpKind::kAdam:
      return "adam";
    case OpKind::kDispatch:
      return "dispatch";
    case OpKind::kCombine:
      return "combine";
    case OpKind::kAllReduce:
      return "all_reduce";
    case OpKind::kReduceScatter:
      return "reduce_scatter";
    case OpKind::kAllGather:
      return "all_gather";
    case OpKind::kBroadcast:
      return "broadcast";
    case OpKind::kAllToAll:
      return "all_to_all";
    case OpKind::kSend:
      return "send";
    case OpKind::kRecv:
      return "recv";
  }
  return "unknown";  // a value outside the enum; every kind returns above
}

}  // namespace moebius
