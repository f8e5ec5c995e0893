#include "workloads/serving/cache_tensor.h"

#include <algorithm>

namespace moebius {

std::int64_t cache_columns(const Model& model, int tp) {
  if (model.attention == AttentionKind::kMla)
    return model.mla.kv_rank + model.mla.rope_dim + model.indexer.head_dim;
  // Fewer heads of keys than ranks: several ranks keep the same one.
  return std::int64_t{2} * std::max(1, model.kv_heads / tp) * model.head_dim;
}

Tensor cache_tensor(const Model& model, const CacheShape& shape, int layer) {
  return {.scope = Scope::kRank,
          .memory = MemoryKind::kCache,
          .dtype = shape.kv,
          .role = Role::kCache,
          .layer = static_cast<std::int16_t>(layer),
          .key = parameter_key(Role::kCache, layer, Part::kWeight),
          .rows = shape.rows,
          .columns = cache_columns(model, shape.tp)};
}

Tensor state_tensor(const Model& model, int tp, std::int64_t sequences, int layer) {
  return {.scope = Scope::kRank,
          .memory = MemoryKind::kCache,
          .dtype = DType::kFp32,
          .role = Role::kDeltaRule,
          .layer = static_cast<std::int16_t>(layer),
          .key = parameter_key(Role::kDeltaRule, layer, Part::kMaster),
          .rows = sequences,
          .columns = std::int64_t{model.delta.value_columns() / tp} * model.delta.key_dim};
}

Tensor convolved_tensor(const Model& model, int tp, std::int64_t sequences, int layer) {
  return {.scope = Scope::kRank,
          .memory = MemoryKind::kCache,
          .dtype = DType::kBf16,
          .role = Role::kConvolution,
          .layer = static_cast<std::int16_t>(layer),
          .key = parameter_key(Role::kConvolution, layer, Part::kMaster),
          .rows = sequences,
          .columns = std::int64_t{model.delta.convolved_columns() / tp} * (model.delta.convolution - 1)};
}

Tensor host_cache_tensor(const Model& model, const CacheShape& shape, int layer) {
  Tensor tensor = cache_tensor(model, shape, layer);
  tensor.key = parameter_key(Role::kCache, layer, Part::kMaster);
  tensor.on_host = true;
  return tensor;
}

}  // namespace moebius
