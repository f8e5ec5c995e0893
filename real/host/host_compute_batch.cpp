// Compute ops of serving on the CPU: the tokens of a batch, its cache, what it generates.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/batch_tokens.h"
#include "real/host/host_kernels_attention.h"
#include "real/host/host_kernels_batch.h"
#include "real/host/op_context.h"
#include "real/rounding.h"

namespace moebius {
namespace {

// Rows of the cache that the op writes: of new tokens, or of sequences.
template <class Real>
std::vector<std::int32_t> slots_of(const OpContext<Real>& c) {
  return c.shape().heads == 1 ? c.batch().states() : c.batch().slots();
}

// Only the new rows are rounded: the others are what they were, and a format with scales has one a row.
template <class Real>
void append(OpContext<Real>& c) {
  const std::vector<std::int32_t> slots = slots_of(c);
  Matrix<Real> rows(static_cast<std::int64_t>(slots.size()), c.output_tensor(0).columns);
  std::int64_t first = 0;
  for (int i = 0; i < c.op().num_inputs; ++i) {
    const Matrix<Real>& part = c.in(i);
    CHECK(part.rows == rows.rows && first + part.columns <= rows.columns,
          fmt::format("{} x {} into {} x {}", part.rows, part.columns, rows.rows, rows.columns));
    for (std::int64_t r = 0; r < rows.rows; ++r) std::copy_n(part.row(r), part.columns, rows.row(r) + first);
    first += part.columns;
  }
  if (!c.options().exact) round_matrix<Real>(rows.values, rows.rows, rows.columns, c.output_tensor(0).dtype);
  Matrix<Real>& cache = c.store().change(c.output_id(0));
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    CHECK(slots[r] < cache.rows, fmt::format("row {} of a cache of {}", slots[r], cache.rows));
    std::copy_n(rows.row(r), rows.columns, cache.row(slots[r]));
  }
}

template <class Real>
void read_back(OpContext<Real>& c) {
  const Matrix<Real>& cache = c.in(0);
  const std::vector<std::int32_t> slots = c.shape().heads == 1 ? c.batch().states() : cached_rows(c.batch());
  std::int64_t first = 0;
  for (int i = 0; i < c.op().num_outputs; ++i) {
    Matrix<Real> part(static_cast<std::int64_t>(slots.size()), c.output_tensor(i).columns);
    for (std::int64_t r = 0; r < part.rows; ++r)
      std::copy_n(cache.row(slots[r]) + first, part.columns, part.row(r));
    first += part.columns;
    c.out(i, std::move(part));
  }
  CHECK(first == cache.columns, fmt::format("{} of {} columns", first, cache.columns));
}

template <class Real>
void attend_to_cache(OpContext<Real>& c) {
  const Shape& s = c.shape();
  const Matrix<Real>&q = c.in(0), &cache = c.in(1);
  Matrix<Real> o(q.rows, std::int64_t{s.heads} * s.v_dim);
  paged_attention<Real>({.heads = s.heads,
                         .kv_heads = s.kv_heads,
                         .head_dim = s.head_dim,
                         .v_dim = s.v_dim,
                         .window = s.window,
                         .columns = s.n,
                         .cache_columns = cache.columns,
                         .scale = c.op().scale * c.options().constants.score_scale,
                         .chosen = s.k},
                        c.batch(), q.view(), cache.view(), s.k > 0 ? c.in(2).view() : std::span<const Real>(),
                        o.view());
  c.out(0, std::move(o));
}

template <class Real>
void score_keys(OpContext<Real>& c) {
  const Shape& s = c.shape();
  const Matrix<Real>&q = c.in(0), &cache = c.in(1), &weights = c.in(2);
  Matrix<Real> scores(q.rows, s.n);
  index_scores<Real>({s.heads, s.head_dim, cache.columns, s.n}, c.batch(), q.view(), cache.view(),
                     weights.view(), scores.view());
  c.out(0, std::move(scores));
}

template <class Real>
void choose_keys(OpContext<Real>& c) {
  const Shape& s = c.shape();
  const Matrix<Real>& scores = c.in(0);
  Matrix<Real> chosen(scores.rows, s.k);
  top_keys<Real>(s.k, c.batch(), scores.columns, scores.view(), chosen.view());
  c.out(0, std::move(chosen));
}

AbsorbShape absorb_shape(const Shape& s) {
  return {.heads = s.heads, .nope = s.head_dim - s.k, .rope = s.k, .v_dim = s.v_dim, .latent = s.n};
}

template <class Real>
void absorb(OpContext<Real>& c) {
  const AbsorbShape s = absorb_shape(c.shape());
  Matrix<Real> wide(c.in(0).rows, s.heads * (s.latent + s.rope));
  absorb_queries<Real>(s, c.in(0).view(), c.in(1).view(), wide.view());
  c.out(0, std::move(wide));
}

template <class Real>
void values_of_absorbed(OpContext<Real>& c) {
  const AbsorbShape s = absorb_shape(c.shape());
  Matrix<Real> y(c.in(0).rows, s.heads * s.v_dim);
  absorbed_values<Real>(s, c.in(0).view(), c.in(1).view(), y.view());
  c.out(0, std::move(y));
}

template <class Real>
void last_rows(OpContext<Real>& c) {
  const Matrix<Real>& x = c.in(0);
  const std::vector<std::int32_t> first = c.batch().first_rows();
  Matrix<Real> y(static_cast<std::int64_t>(first.size()) - 1, x.columns);
  for (std::int64_t i = 0; i < y.rows; ++i) std::copy_n(x.row(first[i + 1] - 1), x.columns, y.row(i));
  c.out(0, std::move(y));
}

template <class Real>
void greedy_sample(OpContext<Real>& c) {
  const Matrix<Real>& logits = c.in(0);
  Matrix<Real> best(logits.rows, 2);
  const std::int64_t gathered = c.shape().groups;
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    const auto largest =
        std::max_element(logits.row(r), logits.row(r) + logits.columns);  // the first of equals
    best.row(r)[0] = *largest;
    const std::int64_t shard = gathered > 0 ? r * gathered / logits.rows : c.index_in(GroupRole::kTensor);
    best.row(r)[1] = static_cast<Real>(shard * logits.columns + (largest - logits.row(r)));
  }
  c.out(0, std::move(best));
}

// Shards come in the order of their ids, so that the first of equals has the lowest.
template <class Real>
void next_token(OpContext<Real>& c) {
  const Matrix<Real>& best = c.in(0);
  const std::vector<std::int64_t> places = next_places(c.batch(), c.output_tensor(0).columns);
  const auto rows = static_cast<std::int64_t>(places.size());
  Matrix<Real>& generated = c.store().change(c.output_id(0));
  for (std::int64_t r = 0; r < rows; ++r) {
    const Real* winner = best.row(r);
    for (std::int64_t shard = r + rows; shard < best.rows; shard += rows)
      if (best.row(shard)[0] > winner[0]) winner = best.row(shard);
    if (places[r] >= 0) generated.values[places[r]] = winner[1];
  }
}

// Values are of their format already: nothing is rounded.
template <class Real>
void place_experts(OpContext<Real>& c) {
  const Matrix<Real>& come = c.in(0);
  Matrix<Real>& held = c.store().change(c.output_id(0));
  const std::int64_t size = c.shape().m / c.shape().groups * held.columns;
  const ExpertTransfer::Layer& layer = c.submission().fragment->transfer->of(c.op().layer);
  for (const ExpertTransfer::Placing& placing : layer.placings_at(c.index_in(GroupRole::kExpert)))
    std::copy_n(come.values.begin() + placing.arrival * size, size,
                held.values.begin() + placing.slot * size);
}

}  // namespace

template <class Real>
void input_of_batch(OpContext<Real>& c) {
  const Matrix<Real>& generated = c.in(0);
  const auto rows =
      row_tokens(c.batch(), {c.options().seed, c.shape().n, c.options().prompts}, generated.columns);
  Matrix<Real> tokens(static_cast<std::int64_t>(rows.size()), 1);
  for (std::size_t r = 0; r < rows.size(); ++r)
    tokens.values[r] =
        rows[r].place < 0 ? static_cast<Real>(rows[r].prompt) : generated.values[rows[r].place];
  c.out(0, std::move(tokens));
}

// Sequences one after the other, each by itself; rows behind theirs are left to others.
template <class Real>
void attend_in_batch(OpContext<Real>& c) {
  const Shape& s = c.shape();
  const Matrix<Real>&q = c.in(0), &k = c.in(1), &v = c.in(2);
  Matrix<Real> o(q.rows, std::int64_t{s.heads} * s.v_dim), lse(q.rows, s.heads);
  std::int64_t row = 0, key = 0;
  for (const BatchSequence& sequence : c.batch().sequences) {
    const auto rows_of = [&](auto matrix) {
      return matrix->view().subspan(row * matrix->columns, sequence.count * matrix->columns);
    };
    const auto keys_of = [&](const Matrix<Real>& matrix) {
      return matrix.view().subspan(key * matrix.columns, sequence.length() * matrix.columns);
    };
    attention<Real>({.queries = sequence.count,
                     .keys = sequence.length(),
                     .heads = s.heads,
                     .kv_heads = s.kv_heads,
                     .head_dim = s.head_dim,
                     .v_dim = s.v_dim,
                     .window = s.window,
                     .score_scale = c.options().constants.score_scale},
                    {rows_of(&q), keys_of(k), keys_of(v)}, {rows_of(&o), rows_of(&lse)});
    row += sequence.count;
    key += sequence.length();
  }
  c.out(0, std::move(o));
  c.out(1, std::move(lse));
}

template <class Real>
void compute_batch(OpContext<Real>& c) {
  const OpKind kind = c.op().kind;
  if (kind == OpKind::kCacheAppend) return c.shape().k == 1 ? read_back(c) : append(c);
  if (kind == OpKind::kPagedAttention) return attend_to_cache(c);
  if (kind == OpKind::kIndexScores) return score_keys(c);
  if (kind == OpKind::kTopKeys) return choose_keys(c);
  if (kind == OpKind::kAbsorbQueries) return absorb(c);
  if (kind == OpKind::kAbsorbedValues) return values_of_absorbed(c);
  if (kind == OpKind::kConvolution) return convolve_batch(c);
  if (kind == OpKind::kDeltaRule) return delta_rule_of_batch(c);
  if (kind == OpKind::kLastRows) return last_rows(c);
  if (kind == OpKind::kGreedySample) return greedy_sample(c);
  if (kind == OpKind::kPlaceExperts) return place_experts(c);
  CHECK(kind == OpKind::kNextToken, fmt::format("{} is not of serving", to_string(kind)));
  next_token(c);
}

template void compute_batch(OpContext<float>&);
template void compute_batch(OpContext<double>&);
template void input_of_batch(OpContext<float>&);
template void input_of_batch(OpContext<double>&);
template void attend_in_batch(OpContext<float>&);
template void attend_in_batch(OpContext<double>&);

}  // namespace moebius
