// Every compute kind with a small, a common and a large shape: what the laws are tested on.
#pragma once

#include <vector>

#include "models/op_kind.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

inline bool is_attention_kind(OpKind kind) {
  return kind == OpKind::kAttention || kind == OpKind::kPagedAttention || kind == OpKind::kAttentionGrad;
}

// A shape with all fields that any kind reads, scaled by `rows` tokens.
inline Shape sample_shape(OpKind kind, std::int64_t rows) {
  Shape shape{.m = rows, .n = 2048, .k = 1024};
  if (kind == OpKind::kPagedAttention)
    return {.m = rows,
            .n = 8 * (128 + 128),
            .groups = 1,
            .heads = 32,
            .kv_heads = 8,
            .head_dim = 128,
            .v_dim = 128,
            .kv = rows};
  if (kind == OpKind::kIndexScores)
    return {.m = rows, .n = rows, .groups = 1, .heads = 64, .head_dim = 128, .kv = rows};
  if (kind == OpKind::kTopKeys) return {.m = rows, .n = rows, .k = 2048, .groups = 1, .kv = rows};
  if (kind == OpKind::kAbsorbQueries || kind == OpKind::kAbsorbedValues)
    return {.m = rows, .n = 512, .k = 64, .heads = 32, .head_dim = 192, .v_dim = 128};
  if (kind == OpKind::kConvolution) return {.m = rows, .n = 2048, .k = 4, .groups = 1};
  if (kind == OpKind::kDeltaRule)
    return {.m = rows, .n = 8192, .groups = 1, .heads = 32, .kv_heads = 16, .head_dim = 128, .v_dim = 128};
  if (is_attention_kind(kind))
    return {.m = rows, .groups = 1, .heads = 32, .kv_heads = 8, .head_dim = 128, .v_dim = 128, .kv = rows};
  if (is_grouped(kind)) shape.groups = 4;
  if (kind == OpKind::kGroupedGemmWgrad) shape = {.m = 2048, .n = 1024, .k = rows, .groups = 4};
  if (kind == OpKind::kMlaKeys || kind == OpKind::kMlaKeysGrad)
    return {.m = rows, .n = 32 * 256, .k = 64, .heads = 32, .head_dim = 192, .v_dim = 128};
  if (kind == OpKind::kRotary || kind == OpKind::kRotaryGrad) {
    shape.heads = 16;
    shape.head_dim = 64;
  }
  if (kind == OpKind::kActivation || kind == OpKind::kActivationGrad) shape.k = 2;
  if (kind == OpKind::kGate || kind == OpKind::kGateGrad) shape.k = 8;
  if (kind == OpKind::kCrossEntropy || kind == OpKind::kLastRows || kind == OpKind::kNextToken ||
      kind == OpKind::kPlaceExperts)
    shape.groups = 1;
  return shape;
}

inline std::vector<OpKind> compute_kinds() {
  std::vector<OpKind> kinds;
  for (int i = 0; i < kNumOpKinds; ++i)
    if (!is_communication(static_cast<OpKind>(i))) kinds.push_back(static_cast<OpKind>(i));
  return kinds;
}

}  // namespace moebius
