#include "workloads/cost/expert_ops.h"

#include <numeric>

namespace moebius {
namespace {

bool is_quantised(DType dtype) {
  return element_bytes(dtype) < 2;
}

}  // namespace

std::vector<CostQuery> expert_kernels(const ExpertLayer& layer, std::int64_t tokens,
                                      std::span<const std::int32_t> rows, int cores) {
  const auto m = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const auto groups = static_cast<std::int32_t>(rows.size());
  const std::int64_t up = (layer.gated ? 2 : 1) * layer.width;
  std::vector<CostQuery> kernels;
  const auto add = [&](OpKind kind, const Shape& shape, DType dtype) {
    kernels.push_back({.kind = kind, .shape = shape, .dtype = dtype, .cores = cores});
  };
  const auto add_grouped = [&](std::int64_t n, std::int64_t k) {
    add(OpKind::kGroupedGemm, {.m = m, .n = n, .k = k, .groups = groups}, layer.dtype);
    kernels.back().rows = rows;
    kernels.back().stored = layer.stored;
  };
  add(OpKind::kGate, {.m = tokens, .n = layer.experts, .k = layer.active}, DType::kBf16);
  if (is_quantised(layer.dtype)) add(OpKind::kQuantise, {.m = tokens, .n = layer.hidden}, layer.dtype);
  add(OpKind::kPermute, {.m = m, .n = layer.hidden, .k = layer.active}, layer.dtype);
  add_grouped(up, layer.hidden);
  add(OpKind::kActivation, {.m = m, .n = layer.width, .k = layer.gated ? 2 : 1}, layer.dtype);
  add_grouped(layer.hidden, layer.width);
  // It reads `m` rows and writes one a token; an unpermute of so many rows reads and writes each.
  add(OpKind::kUnpermute, {.m = (m + tokens + 1) / 2, .n = layer.hidden}, DType::kBf16);
  return kernels;
}

bool is_expert_gemm(const CostQuery& query) {
  return query.kind == OpKind::kGroupedGemm;
}

}  // namespace moebius
