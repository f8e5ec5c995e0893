#include "real/bench/op_operands.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"
#include "real/bench/op_operands_batch.h"
#include "workloads/schedule/context_part.h"

namespace moebius {
namespace {

constexpr DType kFp32 = DType::kFp32, kBf16 = DType::kBf16;

bool is_quantised(DType dtype) {
  return dtype == DType::kFp8 || dtype == DType::kInt8 || dtype == DType::kFp4 || dtype == DType::kInt4;
}

bool has_keys(OpKind kind) {
  return kind == OpKind::kAttention || kind == OpKind::kAttentionGrad || kind == OpKind::kPagedAttention ||
         kind == OpKind::kIndexScores || kind == OpKind::kTopKeys;
}

OperandSpec positive(std::int64_t rows, std::int64_t columns, DType dtype = kFp32) {
  return {.rows = rows, .columns = columns, .dtype = dtype, .contents = Contents::kPositive};
}
OperandSpec ids(std::int64_t rows, std::int64_t below) {
  return {.rows = rows, .columns = 1, .dtype = DType::kInt32, .contents = Contents::kIds, .below = below};
}
OperandSpec sum(std::int64_t rows, std::int64_t columns) {
  return {.rows = rows, .columns = columns, .dtype = kFp32, .changed = true};
}
OperandSpec weight(std::int64_t experts, std::int64_t rows, std::int64_t columns, DType dtype) {
  OperandSpec spec = matrix(experts * rows, columns, dtype);
  spec.weight = true;
  spec.expert_rows = rows;
  return spec;
}
// An operand of a weight gradient.
OperandSpec transposed(std::int64_t rows, std::int64_t columns, DType dtype) {
  return {.rows = rows, .columns = columns, .dtype = dtype, .by_columns = is_quantised(dtype)};
}

std::vector<std::int32_t> rows_of(const CostQuery& query, std::int64_t all) {
  if (!query.rows.empty()) return {query.rows.begin(), query.rows.end()};
  const std::int64_t groups = std::max(query.shape.groups, 1);
  std::vector<std::int32_t> rows;
  for (std::int64_t i = 0; i < groups; ++i)
    rows.push_back(static_cast<std::int32_t>(all / groups + (i < all % groups)));
  return rows;
}

// Copies stand as they arrived, each from a token of its own.
RoutePlan plan_of(std::vector<std::int32_t> expert_rows, int active) {
  RoutePlan plan;
  plan.active = active;
  plan.received = std::accumulate(expert_rows.begin(), expert_rows.end(), 0);
  plan.sent.resize(1);
  plan.received_from = {plan.received};
  plan.copy_row.resize(plan.received);
  std::iota(plan.copy_row.begin(), plan.copy_row.end(), 0);
  for (std::int32_t i = 0; i < plan.received; ++i) plan.copy_slot.push_back(i % active);
  plan.experts_per_rank = static_cast<int>(expert_rows.size());
  plan.expert_rows = std::move(expert_rows);
  return plan;
}

// Experts of each token follow each other; the gate reads nothing else of a route.
RoutePlan choices_of(const Shape& s) {
  RoutePlan plan = plan_of({0}, static_cast<int>(s.k));
  for (std::int64_t i = 0; i < s.m * s.k; ++i) plan.choices.push_back(static_cast<std::int32_t>(i % s.n));
  return plan;
}

class Operands {
 public:
  explicit Operands(const CostQuery& query)
      : query_(query),
        s_(query.shape),
        d_(query.dtype),
        kept_(stored_dtype(query)),
        result_(is_quantised(d_) ? kBf16 : d_) {
    made_.op.kind = query.kind;
    made_.op.dtype = query.dtype;
    made_.op.shape = query.shape;
  }

  OpOperands of_gemm() {
    if (query_.kind == OpKind::kGemmWgrad) {
      in(transposed(s_.k, s_.m, d_)), in(transposed(s_.k, s_.n, d_)), out(sum(s_.m, s_.n));
      if (s_.heads >= kWithBias) out(sum(s_.m, 1));
    } else {
      const bool forward = query_.kind == OpKind::kGemm;
      in(matrix(s_.m, s_.k, d_));
      in(forward ? weight(1, s_.n, s_.k, kept_) : weight(1, s_.k, s_.n, kept_));
      if (s_.heads >= kWithBias) in(matrix(s_.n, 1, result_));
      out(matrix(s_.m, s_.n, result_));
    }
    return take();
  }

  OpOperands of_experts() {
    const bool wgrad = query_.kind == OpKind::kGroupedGemmWgrad;
    std::vector<std::int32_t> rows = rows_of(query_, wgrad ? s_.k : s_.m);
    const auto experts = static_cast<std::int64_t>(rows.size());
    const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    if (wgrad) {
      in(transposed(all, s_.m, d_)), in(transposed(all, s_.n, d_)), out(sum(experts * s_.m, s_.n));
    } else {
      const bool forward = query_.kind == OpKind::kGroupedGemm;
      in(matrix(all, s_.k, d_));
      in(forward ? weight(experts, s_.n, s_.k, kept_) : weight(experts, s_.k, s_.n, kept_));
      out(matrix(all, s_.n, result_));
    }
    made_.route = plan_of(std::move(rows), 1);
    return take();
  }

  OpOperands of_norm() {
    if (query_.kind == OpKind::kNormGrad) in(matrix(s_.m, s_.n, result_));
    in(matrix(s_.m, s_.n, result_)), in(matrix(1, s_.n, result_)), out(matrix(s_.m, s_.n, result_));
    if (query_.kind == OpKind::kNorm && s_.k == 1) in(matrix(s_.m, s_.n, result_));
    const int means = s_.k != kOfSharedRows ? 0 : query_.kind == OpKind::kNorm ? 1 : 2;
    for (int i = 0; i < means; ++i) in(positive(s_.m, 2));
    if (query_.kind == OpKind::kNormGrad) out(sum(1, s_.n));
    if (query_.kind == OpKind::kNorm && is_quantised(d_)) out(matrix(s_.m, s_.n, d_));
    return take();
  }

  OpOperands of_attention() {
    const std::int64_t keys = s_.kv * std::max(s_.groups, 1), heads = s_.heads, kv_heads = s_.kv_heads;
    const bool back = query_.kind == OpKind::kAttentionGrad;
    const OperandSpec q = matrix(s_.m, heads * s_.head_dim, d_), o = matrix(s_.m, heads * s_.v_dim, result_);
    const OperandSpec k = matrix(keys, kv_heads * s_.head_dim, back ? d_ : kept_);
    const OperandSpec v = matrix(keys, kv_heads * s_.v_dim, back ? d_ : kept_);
    const OperandSpec lse = positive(s_.m, heads);
    if (back) in(o);
    in(q), in(k), in(v);
    if (!back) return out(o), out(lse), take();
    in(o), in(lse);
    for (OperandSpec gradient : {q, k, v}) gradient.dtype = result_, out(gradient);
    return take();
  }

  OpOperands of_activation() {
    const OperandSpec x = matrix(s_.m, s_.k * s_.n, result_), y = matrix(s_.m, s_.n, result_);
    const OperandSpec gate = matrix(s_.m, 1, result_);
    const bool back = query_.kind == OpKind::kActivationGrad;
    if (s_.k == 3) return in(y), in(y), out(y), take();
    if (s_.k == kGateOfRows && back) return in(y), in(y), in(gate), out(y), out(gate), take();
    if (s_.k == kGateOfRows) return in(y), in(gate), out(y), take();
    if (back) return in(y), in(x), out(x), take();
    in(x), out(y);
    if (is_quantised(d_)) out(matrix(s_.m, s_.n, d_));
    return take();
  }

  OpOperands of_gate() {
    const OperandSpec logits = matrix(s_.m, s_.n, result_), weights = matrix(s_.m, s_.k, kFp32);
    made_.route = choices_of(s_);
    if (query_.kind == OpKind::kGate) return in(logits), out(weights), take();
    return in(weights), in(logits), out(logits), take();
  }

  OpOperands of_copies() {
    const int active = static_cast<int>(std::max<std::int64_t>(s_.k, 1));
    made_.route = plan_of({static_cast<std::int32_t>(s_.m)}, active);
    const bool as_is = query_.kind == OpKind::kPermute || query_.kind == OpKind::kUnpermuteGrad;
    const OperandSpec rows = matrix(s_.m, s_.n, as_is ? d_ : result_);
    in(rows);
    const bool weighted = query_.kind == OpKind::kPermute || query_.kind == OpKind::kPermuteGrad;
    const OperandSpec received = matrix(s_.m, active, kFp32), by_copy = matrix(s_.m, 1, kFp32);
    if (weighted) in(query_.kind == OpKind::kPermute ? received : by_copy);
    out(rows);
    if (weighted) out(query_.kind == OpKind::kPermute ? by_copy : received);
    return take();
  }

  OpOperands of_columns() {
    const OperandSpec whole = matrix(s_.m, s_.n, result_);
    const OperandSpec left = matrix(s_.m, (s_.n + 1) / 2, result_), right = matrix(s_.m, s_.n / 2, result_);
    const bool split = query_.kind == OpKind::kSplit;
    split ? in(whole) : out(whole);
    split ? out(left) : in(left);
    if (right.columns > 0) split ? out(right) : in(right);
    return take();
  }

  OpOperands of_latent() {
    const std::int64_t nope = s_.head_dim - s_.k, heads = s_.heads;
    const OperandSpec kv = matrix(s_.m, heads * (nope + s_.v_dim), result_),
                      rope = matrix(s_.m, s_.k, result_);
    const OperandSpec k = matrix(s_.m, heads * s_.head_dim, result_);
    const OperandSpec v = matrix(s_.m, heads * s_.v_dim, result_);
    if (query_.kind == OpKind::kMlaKeys) return in(kv), in(rope), out(k), out(v), take();
    return in(k), in(v), out(kv), out(rope), take();
  }

  // One matrix in, or two for kAdd, and one out.
  OpOperands of_merged_attention() {
    const OperandSpec o = matrix(s_.m, s_.n, result_), lse = positive(s_.m, s_.heads);
    in(o), in(lse), in(o), in(lse);
    return out(o), out(lse), take();
  }

  OpOperands of_rows() {
    const bool adds = query_.kind == OpKind::kAdd;
    if (adds && s_.k == kMergeAttention) return of_merged_attention();
    for (int i = 0; i < (adds ? 2 : 1); ++i) in(matrix(s_.m, s_.n, result_));
    return out(matrix(s_.m, s_.n, result_)), take();
  }

  OpOperands of_quantise() {
    in(matrix(s_.m, s_.n, kBf16));
    OperandSpec y = matrix(s_.m, s_.n, is_quantised(d_) ? d_ : DType::kFp8);
    y.by_columns = query_.kind == OpKind::kTransposeQuantise;
    return out(y), take();
  }

  OpOperands of_tokens() {
    if (query_.kind == OpKind::kInput) {
      for (std::int64_t i = 0; i <= s_.k; ++i) out(ids(s_.m, s_.n));
      return take();
    }
    in(ids(s_.m, s_.n));
    if (query_.kind == OpKind::kEmbedding)
      return in(matrix(s_.n, s_.k, result_)), out(matrix(s_.m, s_.k, result_)), take();
    return in(matrix(s_.m, s_.k, result_)), out(sum(s_.n, s_.k)), take();
  }

  OpOperands of_loss() {
    const OperandSpec logits = matrix(s_.m, s_.n, result_);
    in(logits), in(ids(s_.m, s_.n));
    if (query_.kind == OpKind::kCrossEntropyStats) return out(positive(s_.m, 3)), take();
    in(positive(s_.m * std::max(s_.groups, 1), 3));
    return out(sum(1, 1)), out(logits), take();
  }

  OpOperands of_adam() {
    constexpr std::int64_t kColumns = 128;
    made_.in_place = true;
    const std::int64_t rows = s_.m * s_.v_dim / kShareOfUpdate / kColumns, rest = s_.m - rows * kColumns;
    if (rows > 0) add_parameter(rows * kColumns, weight(1, rows, kColumns, DType::kFp8));
    if (rest > 0) add_parameter(rest, matrix(rest, 1, kBf16));
    return take();
  }

  OpOperands of_largest() { return in(matrix(s_.m, s_.n, d_)), out(matrix(1, 1, kFp32)), take(); }
  OpOperands of_row_means() {
    if (s_.k == 1) in(matrix(s_.m, s_.n, result_));
    in(matrix(s_.m, s_.n, result_)), out(matrix(s_.m, 1, kFp32));
    if (s_.k == 1) in(matrix(1, s_.n, result_));
    return take();
  }

  OpOperands of_squares() {
    OperandSpec squares = matrix(1, 1, kFp32);
    squares.changed = true;
    return in(matrix(s_.m, 1, d_)), out(squares), take();
  }

 private:
  void add_parameter(std::int64_t elements, const OperandSpec& of_weight) {
    in(matrix(elements, 1, kFp32)), in(of_weight);
    if (s_.k == 0) in(matrix(elements, 1, kFp32));
    in(matrix(elements, 1, d_)), in(positive(elements, 1, d_));
  }

  void in(const OperandSpec& spec) { made_.inputs.push_back(spec); }
  void out(const OperandSpec& spec) { made_.outputs.push_back(spec); }
  OpOperands take() { return std::move(made_); }

  const CostQuery& query_;
  const Shape& s_;
  const DType d_, kept_, result_;
  OpOperands made_;
};

// One part for each number of keys.
std::vector<CostQuery> by_keys(const CostQuery& query) {
  const std::int64_t queries = query.shape.m / std::max(query.shape.groups, 1);
  std::map<std::int32_t, std::int32_t> sequences;
  for (const std::int32_t keys : query.rows) ++sequences[keys];
  std::vector<CostQuery> parts;
  for (const auto& [keys, count] : sequences) {
    CostQuery part = query;
    part.rows = {};
    part.shape.kv = keys;
    part.shape.groups = count;
    part.shape.m = queries * count;
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

std::vector<CostQuery> parts_of(const CostQuery& query) {
  if (has_keys(query.kind) && !query.rows.empty()) return by_keys(query);
  if (!query.fused_quantise || !is_quantised(query.dtype)) return {query};
  CostQuery product = query, quantise = query;
  product.fused_quantise = quantise.fused_quantise = false;
  quantise.kind = OpKind::kQuantise;
  quantise.shape = {.m = query.shape.m, .n = query.shape.k};
  quantise.rows = {};
  quantise.stored = {};
  return {quantise, product};
}

OpOperands operands_of(const CostQuery& query) {
  Operands operands(query);
  switch (query.kind) {
    case OpKind::kInput:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
      return operands.of_tokens();
    case OpKind::kGemm:
    case OpKind::kGemmDgrad:
    case OpKind::kGemmWgrad:
      return operands.of_gemm();
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
      return operands.of_experts();
    case OpKind::kNorm:
    case OpKind::kNormGrad:
      return operands.of_norm();
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
      return operands.of_attention();
    case OpKind::kActivation:
    case OpKind::kActivationGrad:
      return operands.of_activation();
    case OpKind::kGate:
    case OpKind::kGateGrad:
      return operands.of_gate();
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
      return operands.of_copies();
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kAdd:
      return operands.of_rows();
    case OpKind::kSplit:
    case OpKind::kConcat:
      return operands.of_columns();
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
      return operands.of_latent();
    case OpKind::kQuantise:
    case OpKind::kTransposeQuantise:
      return operands.of_quantise();
    case OpKind::kCrossEntropyStats:
    case OpKind::kCrossEntropy:
      return operands.of_loss();
    case OpKind::kAdam:
      return operands.of_adam();
    case OpKind::kSumSquares:
      return operands.of_squares();
    case OpKind::kLargest:
      return operands.of_largest();
    case OpKind::kRowMeans:
      return operands.of_row_means();
    case OpKind::kCacheAppend:
    case OpKind::kPagedAttention:
    case OpKind::kIndexScores:
    case OpKind::kTopKeys:
    case OpKind::kAbsorbQueries:
    case OpKind::kAbsorbedValues:
    case OpKind::kConvolution:
    case OpKind::kDeltaRule:
    case OpKind::kLastRows:
    case OpKind::kGreedySample:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
      return operands_of_batch(query);
    case OpKind::kDispatch:
    case OpKind::kCombine:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      break;
  }
  CHECK(false, fmt::format("{} does not compute", to_string(query.kind)));
}

}  // namespace moebius
