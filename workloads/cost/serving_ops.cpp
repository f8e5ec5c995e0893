#include "workloads/cost/serving_ops.h"

namespace moebius {
namespace {

// A product by heads: m rows of each, n columns from k.
CostQuery by_heads(const CostQuery& query, std::int64_t n, std::int64_t k) {
  CostQuery known = query;
  const Shape& s = query.shape;
  known.kind = OpKind::kGroupedGemm;
  known.shape = {.m = s.m * s.heads, .n = n, .k = k, .groups = s.heads, .heads = s.heads};
  return known;
}

}  // namespace

CostQuery priced_as(const CostQuery& query) {
  const Shape& s = query.shape;
  if (query.kind == OpKind::kAbsorbQueries) return by_heads(query, s.n, s.head_dim - s.k);
  if (query.kind == OpKind::kAbsorbedValues) return by_heads(query, s.v_dim, s.n);
  CostQuery known = query;
  if (query.kind == OpKind::kPagedAttention) {
    known.kind = OpKind::kAttention;
    known.shape.n = 0;
  }
  return known;
}

}  // namespace moebius
