#include "workloads/cost/batch_cost.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "models/layer_math.h"
#include "workloads/cost/kernel_sum.h"
#include "workloads/cost/unfused_attention.h"

namespace moebius {
namespace {

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
  // Sequences that decode beside prompts in FP8: kernels of one query are measured with a cache of FP8 alone.
  if (queries == 1 && query.kind == OpKind::kPagedAttention && query.dtype == DType::kFp8)
    one.dtype = DType::kBf16;
  return one;
}

// One launch for all sequences of a microbatch, whatever their lengths, its tiles side by side: a sequence
// takes its share of the tokens of a launch full of sequences like itself.
Cost packed_cost(const CostSource& source, const CostQuery& query, const Batch& batch) {
  std::map<std::int32_t, double> tokens_of_length;
  for (const BatchSequence& sequence : batch.sequences) tokens_of_length[sequence.count] += sequence.count;
  const std::int64_t rows = batch.rows();
  Cost sum;
  double longest = 0;
  for (const auto& [length, tokens] : tokens_of_length) {
    CostQuery full = query;
    full.shape.groups = static_cast<std::int32_t>(rows / length);
    full.shape.m = std::int64_t{full.shape.groups} * length;
    full.shape.kv = length;
    const Cost cost = is_unfused_attention(full) ? unfused_attention_cost(source, full) : source.cost(full);
    const double share = tokens / static_cast<double>(full.shape.m);
    if (share * cost.seconds >= longest) {
      longest = share * cost.seconds;
      sum.origin = cost.origin, sum.error = cost.error, sum.watts = cost.watts;
    }
    sum.seconds += share * cost.seconds;
    sum.memory_bytes += share * cost.memory_bytes;
  }
  return sum;
}

// Tokens of sequences that go row by row, or of those that go in chunks.
std::vector<std::int32_t> tokens_of(const Batch& batch, bool chunked) {
  std::vector<std::int32_t> tokens;
  for (const BatchSequence& sequence : batch.sequences)
    if ((sequence.count > kMostRecurrentRows) == chunked) tokens.push_back(sequence.count);
  return tokens;
}

Cost delta_rule_cost(const CostSource& source, const CostQuery& query, const Batch& batch) {
  KernelSum sum;
  for (const bool chunked : {false, true}) {
    const std::vector<std::int32_t> tokens = tokens_of(batch, chunked);
    if (tokens.empty()) continue;
    CostQuery set = query;
    set.shape.m = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
    set.shape.groups = static_cast<std::int32_t>(tokens.size());
    if (std::adjacent_find(tokens.begin(), tokens.end(), std::not_equal_to<>()) != tokens.end())
      set.rows = tokens;
    sum.add(source.cost(set));
  }
  return sum.sum();
}

}  // namespace

bool depends_on_lengths(const Op& op) {
  return op.batch >= 0 && (op.kind == OpKind::kDeltaRule || op.kind == OpKind::kAttention ||
                           op.kind == OpKind::kAttentionGrad || op.kind == OpKind::kPagedAttention ||
                           op.kind == OpKind::kIndexScores || op.kind == OpKind::kTopKeys);
}

Cost batch_cost(const CostSource& source, const CostQuery& query, const Fragment& fragment, const Op& op) {
  const Batch& batch = *fragment.batches[op.batch];
  if (op.kind == OpKind::kDeltaRule) return delta_rule_cost(source, query, batch);
  if (batch.page_tokens == 0) return packed_cost(source, query, batch);
  KernelSum sum;
  for (const auto& [queries, keys] : keys_by_queries(batch))
    sum.add(source.cost(query_of_set(query, queries, keys)));
  return sum.sum();
}

}  // namespace moebius
