#include "workloads/training/layer_speed.h"

#include <algorithm>

#include "workloads/cost/cost_source.h"

namespace moebius {
namespace {

double gemm_rate(const Accelerator& chip, const LayerSpeedQuery& query, std::int64_t tokens) {
  const Model& model = query.model;
  const int width = model.dense_width > 0 ? model.dense_width : model.hidden;
  const Shape shape{.m = tokens, .n = std::max(1, width / query.plan.tp), .k = model.hidden};
  const Cost cost = make_cost_source(chip)->cost(
      {.kind = OpKind::kGemm, .shape = shape, .dtype = query.plan.gemm, .cores = chip.cores});
  return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k) /
         cost.seconds;
}

// Attention and MLP each gather and scatter (or reduce) once in either direction.
double collective_seconds(const Pool& pool, const FabricSpec& spec, const LayerSpeedQuery& query,
                          std::int64_t tokens) {
  constexpr double kCollectives = 8;
  const double tp = query.plan.tp;
  if (tp <= 1) return 0;
  const double bytes = static_cast<double>(tokens) * query.model.hidden * element_bytes(DType::kBf16);
  return kCollectives * bytes * (tp - 1) / tp / part_of_fabric(pool, spec).link_rate.value;
}

}  // namespace

double layer_speed(const Pool& pool, const FabricSpec& spec, const LayerSpeedQuery& query) {
  const std::int64_t tokens = query.workload.micro_batch * query.workload.sequence_length / query.plan.cp;
  const double forward =
      layer_flops_per_token(query.model, query.model.layers - 1, query.workload.sequence_length, true).value;
  const double flops = 3 * forward * static_cast<double>(tokens) / query.plan.tp;
  return flops /
         (flops / gemm_rate(pool.accelerator, query, tokens) + collective_seconds(pool, spec, query, tokens));
}

}  // namespace moebius
