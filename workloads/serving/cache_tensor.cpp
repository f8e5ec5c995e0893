#include "workloads/serving/cache_tensor.h"

#include <algorithm>

namespace moebius {
namespace {

struct KeptAs {
  Role role;
  Part part;
  DType dtype;
};

Tensor kept(const KeptAs& as, int layer, std::int64_t rows, std::int64_t columns) {
  return {.scope = Scope::kRank,
          .memory = MemoryKind::kCache,
          .dtype = as.dtype,
          .role = as.role,
          .layer = static_cast<std::int16_t>(layer),
          .key = parameter_key(as.role, layer, as.part),
          .rows = rows,
          .columns = columns};
}

}  // namespace

std::int64_t cache_columns(const Model& model, int tp) {
  if (model.attention == AttentionKind::kMla)
    return model.mla.kv_rank + model.mla.rope_dim + model.indexer.head_dim;
  // Fewer heads of keys than ranks: several ranks keep the same one.
  return std::int64_t{2} * std::max(1, model.kv_heads / tp) * model.head_dim;
}

Tensor cache_tensor(const Model& model, const CacheShape& shape, int layer) {
  return kept({Role::kCache, Part::kWeight, shape.kv}, layer, shape.rows, cache_columns(model, shape.tp));
}

Tensor state_tensor(const Model& model, int tp, std::int64_t sequences, int layer) {
  return kept({Role::kDeltaRule, Part::kMaster, DType::kFp32}, layer, sequences,
              std::int64_t{model.delta.value_columns() / tp} * model.delta.key_dim);
}

Tensor convolved_tensor(const Model& model, int tp, std::int64_t sequences, int layer) {
  return kept({Role::kConvolution, Part::kMaster, DType::kBf16}, layer, sequences,
              std::int64_t{model.delta.convolved_columns() / tp} * (model.delta.convolution - 1));
}

Tensor host_cache_tensor(const Model& model, const CacheShape& shape, int layer) {
  Tensor tensor = cache_tensor(model, shape, layer);
  tensor.key = parameter_key(Role::kCache, layer, Part::kMaster);
  tensor.on_host = true;
  return tensor;
}

}  // namespace moebius
