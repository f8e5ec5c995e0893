#include "workloads/cost/checked_rows.h"

#include <algorithm>

#include "workloads/cost/roofline.h"
#include "workloads/cost/serving_ops.h"
#include "workloads/cost/windowed_attention.h"

namespace moebius {
namespace {

std::int64_t rows_of_sequence(const CostQuery& query) {
  return query.shape.m / std::max(1, query.shape.groups);
}

double modelled_seconds(const AnalyticModel& model, const CostQuery& query) {
  return model.estimate(cut_to_sequence(priced_as(query)), Clocks::kSustained).seconds;
}

}  // namespace

bool has_checked_rows(const CostQuery& query) {
  if (query.kind != OpKind::kPagedAttention || query.shape.k > 0) return false;
  const std::int64_t rows = rows_of_sequence(query);
  return rows > 1 && rows <= kMostCheckedRows && query.shape.kv >= 2 * rows;
}

// Kernels of one row are measured with a cache of FP8 alone, not with such products.
CheckedRows::CheckedRows(const CostQuery& query)
    : asked_(query), one_row_(query), rows_(static_cast<std::int32_t>(rows_of_sequence(query))) {
  one_row_.shape.groups = std::max(1, query.shape.groups);
  one_row_.shape.m = one_row_.shape.groups;
  one_row_.stored = stored_dtype(query);
  if (query.dtype == DType::kFp8) one_row_.dtype = DType::kBf16;
  keys_.reserve(query.rows.size() * static_cast<std::size_t>(rows_));
  for (const std::int32_t keys : query.rows) keys_.insert(keys_.end(), rows_, keys);
}

CostQuery CheckedRows::as_heads() const {
  CostQuery query = one_row_;
  query.shape.heads *= rows_;
  return query;
}

CostQuery CheckedRows::of_one() const {
  return one_row_;
}

CostQuery CheckedRows::apart() const {
  CostQuery query = one_row_;
  query.shape.groups *= rows_;
  query.shape.m = query.shape.groups;
  query.rows = keys_;
  return query;
}

CostQuery CheckedRows::as_prompt() const {
  return priced_as(asked_);
}

std::optional<Cost> checked_rows_cost(const CostSource& source, const AnalyticModel& model,
                                      const CostQuery& query) {
  const CheckedRows rows(query);
  const Cost apart = source.cost(rows.apart());
  if (apart.origin == Origin::kAnalytic) return {};
  const Cost as_heads = source.cost(rows.as_heads()), of_one = source.cost(rows.of_one());
  Cost cost = as_heads;
  if (cost.origin == Origin::kAnalytic) {
    cost = apart;
    cost.seconds *= modelled_seconds(model, rows.as_heads()) / modelled_seconds(model, rows.apart());
  }
  if (!is_absorbed_latent(query.shape)) {
    const Cost as_prompt = source.cost(rows.as_prompt());
    if (as_prompt.origin != Origin::kAnalytic && as_prompt.seconds < cost.seconds) cost = as_prompt;
  }
  if (cost.seconds < of_one.seconds) cost = of_one;
  if (cost.seconds > apart.seconds) cost = apart;
  cost.seconds = std::max(cost.seconds, roofline(model.engine().chip, query).seconds());
  cost.memory_bytes = as_heads.memory_bytes;
  // Another kernel than those that were measured.
  if (cost.origin == Origin::kMeasured || cost.origin == Origin::kInterpolated)
    cost.origin = Origin::kExtrapolated;
  cost.error = std::max(cost.error, as_heads.error);
  return cost;
}

}  // namespace moebius
