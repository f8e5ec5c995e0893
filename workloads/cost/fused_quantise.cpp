#include "workloads/cost/fused_quantise.h"

#include "workloads/cost/roofline.h"

namespace moebius {

std::optional<CostQuery> quantise_of(const CostQuery& gemm) {
  if (is_attention(gemm.kind) || !uses_tensor_cores(gemm.kind) || element_bytes(gemm.dtype) >= 2) return {};
  const Shape shape = loaded_shape(gemm);
  if (is_weight_gradient(gemm.kind))
    return CostQuery{.kind = OpKind::kTransposeQuantise,
                     .shape = {.m = shape.k, .n = shape.m + shape.n},
                     .dtype = gemm.dtype,
                     .cores = gemm.cores};
  return CostQuery{.kind = OpKind::kQuantise,
                   .shape = {.m = shape.m, .n = shape.k},
                   .dtype = gemm.dtype,
                   .cores = gemm.cores};
}

Estimate whole_estimate(const AnalyticModel& model, const CostQuery& query, int passes, Clocks clocks) {
  const Estimate op = model.estimate(query, clocks);
  const auto quantise = query.fused_quantise ? quantise_of(query) : std::nullopt;
  if (!quantise) return op;
  const Estimate pass = model.estimate(*quantise, clocks);
  return {op.seconds + passes * pass.seconds, op.memory_bytes + passes * pass.memory_bytes};
}

}  // namespace moebius
