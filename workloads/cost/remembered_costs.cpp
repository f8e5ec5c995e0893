#include "workloads/cost/remembered_costs.h"

#include <algorithm>

namespace moebius {
namespace {

std::uint64_t mixed(std::uint64_t sum, std::uint64_t part) {
  sum = (sum ^ part) * 0x9e3779b97f4a7c15u;
  return sum ^ (sum >> 29);
}

std::uint64_t hash_of(const CostQuery& query) {
  const Shape& s = query.shape;
  std::uint64_t hash = static_cast<std::uint64_t>(query.kind);
  hash = mixed(hash, static_cast<std::uint64_t>(query.cores) << 9 | query.for_whole_chip << 8 |
                         static_cast<std::uint64_t>(query.dtype));
  for (const std::int64_t size : {s.m, s.n, s.k, s.kv}) hash = mixed(hash, static_cast<std::uint64_t>(size));
  for (const std::int32_t size : {s.groups, s.heads, s.head_dim})
    hash = mixed(hash, static_cast<std::uint64_t>(size));
  for (const std::int32_t rows : query.rows) hash = mixed(hash, static_cast<std::uint64_t>(rows));
  return hash;
}

}  // namespace

bool RememberedCosts::Known::answers(const CostQuery& other) const {
  return query.kind == other.kind && query.shape == other.shape && query.dtype == other.dtype &&
         query.cores == other.cores && query.for_whole_chip == other.for_whole_chip &&
         query.stored == other.stored && query.fused_quantise == other.fused_quantise &&
         query.hot == other.hot && query.summed == other.summed &&
         query.promoted_sums == other.promoted_sums && query.scales == other.scales &&
         std::equal(rows.begin(), rows.end(), other.rows.begin(), other.rows.end());
}

Cost RememberedCosts::cost(const CostQuery& query) const {
  const std::uint64_t hash = hash_of(query);
  const auto [first, last] = known_.equal_range(hash);
  for (auto known = first; known != last; ++known)
    if (known->second.answers(query)) return known->second.cost;
  if (known_.size() >= kMostKept) known_.clear();
  CostQuery kept = query;
  kept.rows = {};
  const Cost cost = source_.cost(query);
  known_.emplace(hash, Known{kept, {query.rows.begin(), query.rows.end()}, cost});
  return cost;
}

}  // namespace moebius
