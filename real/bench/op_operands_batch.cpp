#include "real/bench/op_operands_batch.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr std::int32_t kPageTokens = 64;

// `count` sequences of `keys` tokens, of which the last `queries` are new.
BatchPtr equal_batch(std::int64_t count, std::int64_t queries, std::int64_t keys) {
  auto batch = std::make_shared<Batch>();
  batch->page_tokens = kPageTokens;
  std::int32_t page = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    BatchSequence sequence{
        i, 1, static_cast<std::int32_t>(keys - queries), static_cast<std::int32_t>(queries), {}};
    for (std::int64_t room = 0; room < keys; room += kPageTokens) sequence.pages.push_back(page++);
    batch->sequences.push_back(std::move(sequence));
  }
  return batch;
}

// Sequences that share so many new tokens, each behind one whose row of what is kept is read.
BatchPtr batch_with_states(std::int64_t count, std::int64_t tokens) {
  auto batch = std::make_shared<Batch>();
  batch->page_tokens = kPageTokens;
  std::int32_t page = 0;
  const std::int64_t sharing = std::min(count, tokens);
  for (std::int32_t i = 0; i < sharing; ++i) {
    const std::int64_t own = tokens / sharing + (i < tokens % sharing);
    BatchSequence sequence{i, 1, 1, static_cast<std::int32_t>(own), {}, i};
    for (std::int64_t room = 0; room < sequence.length(); room += kPageTokens)
      sequence.pages.push_back(page++);
    batch->sequences.push_back(std::move(sequence));
  }
  return batch;
}

std::int64_t cache_rows(const Batch& batch) {
  std::int64_t pages = 0;
  for (const BatchSequence& sequence : batch.sequences)
    pages += static_cast<std::int64_t>(sequence.pages.size());
  return pages * batch.page_tokens;
}

OperandSpec in_place(std::int64_t rows, std::int64_t columns, DType dtype) {
  return {.rows = rows, .columns = columns, .dtype = dtype, .changed = true};
}

class BatchOperands {
 public:
  explicit BatchOperands(const CostQuery& query)
      : s_(query.shape),
        d_(query.dtype),
        kept_(stored_dtype(query)),
        result_(element_bytes(d_) < 2 ? DType::kBf16 : d_),
        sequences_(std::max(s_.groups, 1)) {
    made_.op.kind = query.kind;
    made_.op.dtype = query.dtype;
    made_.op.shape = query.shape;
  }

  OpOperands append() {
    made_.batch = equal_batch(1, s_.m, s_.m);
    if (s_.k == 1)
      return made({matrix(cache_rows(*made_.batch), s_.n, kept_)}, {matrix(s_.m, s_.n, result_)});
    return made({matrix(s_.m, s_.n, result_)}, {in_place(cache_rows(*made_.batch), s_.n, kept_)});
  }
  OpOperands attention() {
    made_.batch = equal_batch(sequences_, s_.m / sequences_, s_.kv);
    made_.op.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s_.head_dim)));
    std::vector<OperandSpec> inputs{matrix(s_.m, std::int64_t{s_.heads} * s_.head_dim, d_),
                                    matrix(cache_rows(*made_.batch), s_.n, kept_)};
    if (s_.k > 0)  // any positions within the shortest sequence
      inputs.push_back({.rows = s_.m,
                        .columns = s_.k,
                        .dtype = DType::kInt32,
                        .contents = Contents::kIds,
                        .below = s_.kv - s_.m / sequences_ + 1});
    return made(std::move(inputs), {matrix(s_.m, std::int64_t{s_.heads} * s_.v_dim, result_)});
  }
  OpOperands index_scores() {
    made_.batch = equal_batch(sequences_, s_.m / sequences_, s_.kv);
    return made({matrix(s_.m, std::int64_t{s_.heads} * s_.head_dim, d_),
                 matrix(cache_rows(*made_.batch), s_.head_dim, kept_), matrix(s_.m, s_.heads, result_)},
                {matrix(s_.m, s_.n, DType::kFp32)});
  }
  OpOperands top_keys() {
    made_.batch = equal_batch(sequences_, s_.m / sequences_, s_.kv);
    return made({matrix(s_.m, s_.n, DType::kFp32)}, {matrix(s_.m, s_.k, DType::kInt32)});
  }
  OpOperands absorbed(bool queries) {
    const std::int64_t heads = s_.heads, nope = s_.head_dim - s_.k;
    const OperandSpec map = matrix(heads * (nope + s_.v_dim), s_.n, kept_);
    if (queries)
      return made({matrix(s_.m, heads * s_.head_dim, d_), map},
                  {matrix(s_.m, heads * (s_.n + s_.k), result_)});
    return made({matrix(s_.m, heads * s_.n, d_), map}, {matrix(s_.m, heads * s_.v_dim, result_)});
  }
  OpOperands convolution() {
    made_.batch = batch_with_states(sequences_, s_.m);
    return made({matrix(s_.m, s_.n, result_), matrix(s_.n, s_.k, kept_)},
                {matrix(s_.m, s_.n, result_), in_place(sequences_, (s_.k - 1) * s_.n, result_)});
  }
  OpOperands delta_rule() {
    made_.batch = batch_with_states(sequences_, s_.m);
    const std::int64_t heads = s_.heads, values = heads * s_.v_dim;
    return made({matrix(s_.m, s_.n, result_), matrix(s_.m, 2 * heads, result_), matrix(2, heads, result_)},
                {matrix(s_.m, values, result_), in_place(sequences_, values * s_.head_dim, DType::kFp32)});
  }
  OpOperands last_rows() {
    made_.batch = equal_batch(sequences_, s_.m / sequences_, s_.m / sequences_);
    return made({matrix(s_.m, s_.n, result_)}, {matrix(sequences_, s_.n, result_)});
  }
  OpOperands sample() { return made({matrix(s_.m, s_.n, result_)}, {matrix(s_.m, 2, DType::kFp32)}); }
  // Each into the slot of its place.
  OpOperands placed_experts() {
    const std::int64_t rows = s_.m / sequences_;
    const OperandSpec come{.rows = s_.m, .columns = s_.n, .dtype = d_, .weight = true, .expert_rows = rows};
    OperandSpec held = come;
    held.changed = true;
    made_.op.shape.groups = static_cast<std::int32_t>(sequences_);
    ExpertTransfer::Layer layer{.number = -1, .arrivals = {}, .placings = {}};
    for (std::int32_t i = 0; i < sequences_; ++i) {
      layer.arrivals.push_back({0, 0, i});
      layer.placings.push_back({0, i, i});
    }
    made_.transfer = std::make_shared<const ExpertTransfer>(ExpertTransfer{{std::move(layer)}});
    return made({come}, {held});
  }
  OpOperands next_token() {
    made_.batch = equal_batch(s_.m, 1, 1);
    return made({matrix(s_.m * sequences_, 2, DType::kFp32)}, {in_place(s_.m, s_.n, DType::kInt32)});
  }

 private:
  OpOperands made(std::vector<OperandSpec> inputs, std::vector<OperandSpec> outputs) {
    made_.inputs = std::move(inputs);
    made_.outputs = std::move(outputs);
    return std::move(made_);
  }

  const Shape& s_;
  const DType d_, kept_, result_;
  const std::int64_t sequences_;
  OpOperands made_;
};

}  // namespace

OpOperands operands_of_batch(const CostQuery& query) {
  BatchOperands operands(query);
  if (query.kind == OpKind::kCacheAppend) return operands.append();
  if (query.kind == OpKind::kPagedAttention) return operands.attention();
  if (query.kind == OpKind::kIndexScores) return operands.index_scores();
  if (query.kind == OpKind::kTopKeys) return operands.top_keys();
  if (query.kind == OpKind::kAbsorbQueries) return operands.absorbed(true);
  if (query.kind == OpKind::kAbsorbedValues) return operands.absorbed(false);
  if (query.kind == OpKind::kConvolution) return operands.convolution();
  if (query.kind == OpKind::kDeltaRule) return operands.delta_rule();
  if (query.kind == OpKind::kLastRows) return operands.last_rows();
  if (query.kind == OpKind::kGreedySample) return operands.sample();
  if (query.kind == OpKind::kPlaceExperts) return operands.placed_experts();
  CHECK(query.kind == OpKind::kNextToken, fmt::format("{} is not of serving", to_string(query.kind)));
  return operands.next_token();
}

}  // namespace moebius
