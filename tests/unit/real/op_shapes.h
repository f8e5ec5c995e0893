// Small shapes for every compute kind.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "models/op_kind.h"

namespace moebius {

// A small shape with everything that some kind of the table reads.
inline Shape small_shape(OpKind kind) {
  const auto is = [kind](std::initializer_list<OpKind> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  if (is({OpKind::kAttention, OpKind::kAttentionGrad}))
    return {.m = 12, .groups = 2, .heads = 4, .kv_heads = 2, .head_dim = 8, .v_dim = 6, .kv = 9};
  if (kind == OpKind::kPagedAttention)
    return {.m = 12, .n = 28, .groups = 2, .heads = 4, .kv_heads = 2, .head_dim = 8, .v_dim = 6, .kv = 9};
  if (kind == OpKind::kIndexScores) return {.m = 12, .n = 9, .groups = 2, .heads = 3, .head_dim = 8, .kv = 9};
  if (kind == OpKind::kTopKeys) return {.m = 12, .n = 9, .k = 4, .groups = 2, .kv = 9};
  if (is({OpKind::kAbsorbQueries, OpKind::kAbsorbedValues}))
    return {.m = 12, .n = 16, .k = 4, .heads = 2, .head_dim = 12, .v_dim = 8};
  if (kind == OpKind::kConvolution) return {.m = 12, .n = 20, .k = 4, .groups = 3};
  if (kind == OpKind::kDeltaRule)
    return {.m = 12, .n = 56, .groups = 3, .heads = 4, .kv_heads = 2, .head_dim = 8, .v_dim = 6};
  if (is({OpKind::kRotary, OpKind::kRotaryGrad}))
    return {.m = 12, .n = 32, .groups = 2, .heads = 4, .head_dim = 8};
  if (is({OpKind::kMlaKeys, OpKind::kMlaKeysGrad}))
    return {.m = 12, .k = 4, .heads = 2, .head_dim = 12, .v_dim = 8};
  if (is({OpKind::kActivation, OpKind::kActivationGrad, OpKind::kGate, OpKind::kGateGrad}))
    return {.m = 12, .n = 16, .k = 2};
  if (kind == OpKind::kInput) return {.m = 12, .n = 50, .k = 1, .groups = 2};
  if (kind == OpKind::kAdam || kind == OpKind::kSumSquares) return {.m = 100, .n = 1};
  return {.m = 12, .n = 20, .k = 8, .groups = 3};
}

}  // namespace moebius
