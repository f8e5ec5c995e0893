// Norms of queries and keys, of which a tensor-parallel rank has some heads.
#include "workloads/training/layers/layer_writer.h"

namespace moebius {

// A row of all heads is a mean of means: each rank has as many of its columns. Of a head of keys that several
// ranks keep each brings the same, so that it counts once, as the others do.
TensorId LayerWriter::query_key_means(TensorId q, TensorId k) {
  if (model().qk_norm != QkNorm::kPerLayer || plan().tp == 1) return kNoTensor;
  const TensorId own = builder().transient(rows(q), 2, DType::kFp32, Role::kQNorm);
  emit({.kind = OpKind::kRowMeans,
        .role = Role::kQNorm,
        .scale = 1.0f / static_cast<float>(plan().tp),
        .shape = {.m = rows(q), .n = columns(q) + columns(k), .heads = norm_kernels()}},
       {q, k}, {own});
  return collective(OpKind::kAllReduce, GroupRole::kTensor, Lane::kTensorComm, own, rows(own));
}

TensorId LayerWriter::query_key_norm(TensorId x, Role role, int heads, TensorId means) {
  if (model().qk_norm == QkNorm::kNone) return x;
  if (model().qk_norm == QkNorm::kPerHead) return norm(x, role, heads);
  if (means == kNoTensor) return norm(x, role);
  const bool keys = role == Role::kKvNorm;
  const int all = keys ? model().kv_heads : model().heads;
  const TensorId w = norm_weight(role, columns(x));
  Tensor& weight = builder().tensor(w);
  weight.first_column = std::int64_t{shard_.tensor} * all / plan().tp * model().head_dim;
  weight.tensor_copies = heads * plan().tp / all;
  const TensorId y = builder().transient(rows(x), columns(x), DType::kBf16, role);
  emit({.kind = OpKind::kNorm,
        .role = role,
        .shape = {.m = rows(x),
                  .n = columns(x),
                  .k = kOfSharedRows,
                  .heads = norm_kernels(),
                  .kv_heads = keys ? 1 : 0}},
       {x, w, means}, {y});
  return y;
}

}  // namespace moebius
