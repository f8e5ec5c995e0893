#include "workloads/schedule/op.h"

namespace moebius {

// A value outside an enum gives "unknown"; every named one returns inside its switch.

std::string_view to_string(Lane lane) {
  switch (lane) {
    case Lane::kCompute:
      return "compute";
    case Lane::kTensorComm:
      return "tensor_comm";
    case Lane::kExpertComm:
      return "expert_comm";
    case Lane::kSendForward:
      return "send_forward";
    case Lane::kRecvForward:
      return "recv_forward";
    case Lane::kSendBackward:
      return "send_backward";
    case Lane::kRecvBackward:
      return "recv_backward";
    case Lane::kDataComm:
      return "data_comm";
    case Lane::kHostCopy:
      return "host_copy";
    case Lane::kLoader:
      return "loader";
    case Lane::kHostStore:
      return "host_store";
  }
  return "unknown";
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kWeight:
      return "weight";
    case Phase::kGradients:
      return "gradients";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "unknown";
}

std::string_view to_string(GroupRole group) {
  switch (group) {
    case GroupRole::kNone:
      return "none";
    case GroupRole::kTensor:
      return "tensor";
    case GroupRole::kContext:
      return "context";
    case GroupRole::kExpert:
      return "expert";
    case GroupRole::kData:
      return "data";
    case GroupRole::kExpertData:
      return "expert_data";
    case GroupRole::kNext:
      return "next";
    case GroupRole::kPrevious:
      return "previous";
    case GroupRole::kTied:
      return "tied";
    case GroupRole::kDenseTensor:
      return "dense_tensor";
    case GroupRole::kDenseData:
      return "dense_data";
    case GroupRole::kBatch:
      return "batch";
    case GroupRole::kWorld:
      return "world";
    case GroupRole::kShard:
      return "shard";
    case GroupRole::kReplica:
      return "replica";
    case GroupRole::kExpertShard:
      return "expert_shard";
    case GroupRole::kExpertReplica:
      return "expert_replica";
    case GroupRole::kExpertTensor:
      return "expert_tensor";
    case GroupRole::kScales:
      return "scales";
    case GroupRole::kRegather:
      return "regather";
    case GroupRole::kExpertRegather:
      return "expert_regather";
  }
  return "unknown";
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kNone:
      return "none";
    case Role::kInput:
      return "input";
    case Role::kEmbedding:
      return "embedding";
    case Role::kHead:
      return "head";
    case Role::kLoss:
      return "loss";
    case Role::kAttentionNorm:
      return "attention_norm";
    case Role::kQkv:
      return "qkv";
    case Role::kQ:
      return "q";
    case Role::kQA:
      return "q_a";
    case Role::kQNorm:
      return "q_norm";
    case Role::kQB:
      return "q_b";
    case Role::kKvA:
      return "kv_a";
    case Role::kKvNorm:
      return "kv_norm";
    case Role::kKvB:
      return "kv_b";
    case Role::kIndexer:
      return "indexer";
    case Role::kIndexerKey:
      return "indexer_key";
    case Role::kIndexerNorm:
      return "indexer_norm";
    case Role::kIndexerHeads:
      return "indexer_heads";
    case Role::kRope:
      return "rope";
    case Role::kAttention:
      return "attention";
    case Role::kO:
      return "o";
    case Role::kMlpNorm:
      return "mlp_norm";
    case Role::kGateUp:
      return "gate_up";
    case Role::kDown:
      return "down";
    case Role::kRouter:
      return "router";
    case Role::kGate:
      return "gate";
    case Role::kSharedGateUp:
      return "shared_gate_up";
    case Role::kSharedDown:
      return "shared_down";
    case Role::kSharedScore:
      return "shared_score";
    case Role::kExpertGateUp:
      return "expert_gate_up";
    case Role::kExpertDown:
      return "expert_down";
    case Role::kExperts:
      return "experts";
    case Role::kResidual:
      return "residual";
    case Role::kFinalNorm:
      return "final_norm";
    case Role::kMtpHiddenNorm:
      return "mtp_hidden_norm";
    case Role::kMtpEmbeddingNorm:
      return "mtp_embedding_norm";
    case Role::kMtpProjection:
      return "mtp_projection";
    case Role::kPipeline:
      return "pipeline";
    case Role::kDense:
      return "dense";
    case Role::kCache:
      return "cache";
    case Role::kTokens:
      return "tokens";
    case Role::kCollective:
      return "collective";
    case Role::kDeltaGates:
      return "delta_gates";
    case Role::kConvolution:
      return "convolution";
    case Role::kDeltaRule:
      return "delta_rule";
    case Role::kDeltaNorm:
      return "delta_norm";
  }
  return "unknown";
}

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kAuto:
      return "auto";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kHierarchical:
      return "hierarchical";
    case Algorithm::kInSwitch:
      return "in-switch";
    case Algorithm::kRailLocal:
      return "rail-local";
    case Algorithm::kLibrary:
      return "library";
  }
  return "unknown";
}

}  // namespace moebius
