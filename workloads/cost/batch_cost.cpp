#include "workloads/cost/batch_cost.h"

#include <algorithm>
#include <map>

namespace moebius {
namespace {

// The cache may be kept in another format than the arithmetic's.
std::optional<DType> cache_format(const Fragment& fragment, const Op& op) {
  if (op.kind != OpKind::kPagedAttention) return std::nullopt;
  return fragment.tensors[fragment.input(op, 1)].dtype;
}

// Keys of the sequences, by how many queries they have.
std::map<std::int32_t, std::vector<std::int32_t>> keys_by_queries(const Batch& batch) {
  std::map<std::int32_t, std::vector<std::int32_t>> keys;
  for (const BatchSequence& sequence : batch.sequences) keys[sequence.count].push_back(sequence.length());
  return keys;
}

CostQuery query_of_set(const CostQuery& query, std::int32_t queries, const std::vector<std::int32_t>& keys) {
  CostQuery one = query;
  const auto sequences = static_cast<std::int64_t>(keys.size());
  one.shape.m = queries * sequences;
  one.shape.groups = static_cast<std::int32_t>(sequences);
  one.shape.kv = *std::max_element(keys.begin(), keys.end());
  const bool equal = *std::min_element(keys.begin(), keys.end()) == one.shape.kv;
  if (!equal) one.rows = keys;
  return one;
}

}  // namespace

bool sees_keys_of_batch(const Op& op) {
  return op.batch >= 0 && (op.kind == OpKind::kAttention || op.kind == OpKind::kPagedAttention);
}

Cost batch_cost(const CostSource& source, const CostQuery& query, const Fragment& fragment, const Op& op) {
  CostQuery with_format = query;
  with_format.stored = cache_format(fragment, op);
  Cost sum;
  for (const auto& [queries, keys] : keys_by_queries(*fragment.batches[op.batch])) {
    const Cost cost = source.cost(query_of_set(with_format, queries, keys));
    // The longest set speaks for where the figure is known from.
    if (cost.seconds >= sum.seconds) sum.origin = cost.origin, sum.error = cost.error, sum.watts = cost.watts;
    sum.seconds += cost.seconds;
    sum.memory_bytes += cost.memory_bytes;
  }
  return sum;
}

}  // namespace moebius
