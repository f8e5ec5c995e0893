#include "workloads/cost/serving_ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/layer_math.h"

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

CostQuery over_rotated(const CostQuery& query) {
  CostQuery known = query;
  known.shape.n = std::int64_t{query.shape.heads} * query.shape.head_dim;
  known.shape.k = 0;
  return known;
}

CostQuery without_values(const CostQuery& query) {
  CostQuery known = query;
  known.shape.kv_heads = known.shape.v_dim = 0;
  return known;
}

// A query that chooses its keys reads them by itself, as one that decodes does over as many.
CostQuery over_chosen(const CostQuery& query) {
  CostQuery known = query;
  Shape one = query.shape;
  one.window = static_cast<std::int32_t>(one.k);
  double pairs = 0;
  if (query.rows.empty()) pairs = attention_pairs(one);
  one.m /= std::max(1, one.groups);
  one.groups = 1;
  for (const std::int32_t keys : query.rows) {
    one.kv = keys;
    pairs += attention_pairs(one);
  }
  const std::int64_t rows =
      query.rows.empty() ? query.shape.m : one.m * static_cast<std::int64_t>(query.rows.size());
  known.rows = {};
  known.shape.m = rows;
  known.shape.groups = static_cast<std::int32_t>(rows);
  known.shape.kv = std::llround(pairs / static_cast<double>(rows));
  known.shape.k = 0;
  return known;
}

// What a pass over all pairs takes grows with the keys.
CostQuery over_mean_keys(const CostQuery& query) {
  CostQuery known = query;
  const auto sequences = static_cast<std::int64_t>(query.rows.size());
  const std::int64_t keys = std::accumulate(query.rows.begin(), query.rows.end(), std::int64_t{0});
  known.shape.kv = (keys + sequences / 2) / sequences;
  known.rows = {};
  return known;
}

}  // namespace

CostQuery priced_as(const CostQuery& query) {
  const Shape& s = query.shape;
  if (query.kind == OpKind::kAbsorbQueries) return by_heads(query, s.n, s.head_dim - s.k);
  if (query.kind == OpKind::kAbsorbedValues) return by_heads(query, s.v_dim, s.n);
  if (query.kind == OpKind::kRotary && s.k == kInPlace) return over_rotated(query);
  if (query.kind == OpKind::kMlaKeys && s.kv_heads == kValuesStay) return without_values(query);
  if (query.kind == OpKind::kTopKeys && !query.rows.empty()) return over_mean_keys(query);
  const bool attends = query.kind == OpKind::kPagedAttention, scores = query.kind == OpKind::kIndexScores;
  if (!attends && !scores) return query;
  CostQuery known = s.k > 0 ? over_chosen(query) : query;
  known.kind = OpKind::kAttention;
  known.shape.n = 0;
  if (scores) known.shape.kv_heads = 1;
  return known;
}

}  // namespace moebius
