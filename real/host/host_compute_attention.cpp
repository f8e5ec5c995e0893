// Compute ops of attention on the CPU: positions, keys from latents, the attention itself.
#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/context_rows.h"
#include "real/host/host_kernels_attention.h"
#include "real/host/host_kernels_norm.h"
#include "real/host/op_context.h"

namespace moebius {
namespace {

// Rows of a batch stand at any position.
template <class Real>
void rotate_in_batch(OpContext<Real>& c, Matrix<Real> y, Turn turn) {
  const std::vector<std::int32_t> positions = c.submission().fragment->batches[c.op().batch]->positions();
  for (std::int64_t row = 0; row < y.rows; ++row) {
    rotate<Real>({y.row(row), static_cast<std::size_t>(y.columns)},
                 {.columns = y.columns,
                  .heads = std::max(c.shape().heads, 1),
                  .rotated = c.shape().head_dim,
                  .sequence_rows = 1,
                  .first_position = positions[row],
                  .rotary = c.options().constants.rotary},
                 turn);
  }
  c.out(0, std::move(y));
}

// A context-parallel rank holds the chunk of each sequence that its index says, or two of them.
template <class Real>
void rotary(OpContext<Real>& c, Turn turn) {
  Matrix<Real> y = c.in(0);
  if (c.op().batch >= 0) return rotate_in_batch(c, std::move(y), turn);
  const std::int64_t sequences = std::max(c.shape().groups, 1), rows = y.rows / sequences;
  for (const ContextRows::Run& run : ContextRows(c, rows).runs()) {
    for (std::int64_t s = 0; s < sequences; ++s)
      rotate<Real>({y.row(s * rows + run.row), static_cast<std::size_t>(run.count * y.columns)},
                   {.columns = y.columns,
                    .heads = std::max(c.shape().heads, 1),
                    .rotated = c.shape().head_dim,
                    .sequence_rows = run.count,
                    .first_position = run.position,
                    .rotary = c.options().constants.rotary},
                   turn);
  }
  c.out(0, std::move(y));
}

// Keys gathered over a context group stand member by member; attention wants them sequence by sequence, and
// only those up to this member's own chunk: what comes later is not seen. Keys that are as many as the
// queries were not gathered: they are this member's own.
template <class Real>
struct ContextKeys {
  std::int64_t members, mine, sequences, chunk;  // chunk: rows of one sequence on one member

  ContextKeys(const OpContext<Real>& c, std::int64_t query_rows, std::int64_t key_rows)
      : members(key_rows > query_rows ? c.size_of(GroupRole::kContext) : 1),
        mine(key_rows > query_rows ? c.index_in(GroupRole::kContext) : 0),
        sequences(std::max(c.shape().groups, 1)),
        chunk(key_rows / sequences / members) {}

  std::int64_t keys() const { return (mine + 1) * chunk; }
  // Calls copy(row among the seen keys, row among the gathered ones).
  template <class Copy>
  void for_each(const Copy& copy) const {
    for (std::int64_t s = 0; s < sequences; ++s) {
      for (std::int64_t p = 0; p < keys(); ++p)
        copy(s * keys() + p, (p / chunk * sequences + s) * chunk + p % chunk);
    }
  }
  Matrix<Real> seen(const Matrix<Real>& gathered) const {
    Matrix<Real> rows(sequences * keys(), gathered.columns);
    for_each([&](std::int64_t to, std::int64_t from) {
      std::copy_n(gathered.row(from), gathered.columns, rows.row(to));
    });
    return rows;
  }
  Matrix<Real> gathered(const Matrix<Real>& seen) const {
    Matrix<Real> rows(sequences * chunk * members, seen.columns);
    for_each(
        [&](std::int64_t from, std::int64_t to) { std::copy_n(seen.row(from), seen.columns, rows.row(to)); });
    return rows;
  }
};

template <class Real>
AttentionShape attention_shape(const OpContext<Real>& c, std::int64_t query_rows, std::int64_t keys) {
  const Shape& s = c.shape();
  const std::int64_t sequences = std::max(s.groups, 1);
  return {.sequences = sequences,
          .queries = query_rows / sequences,
          .keys = keys,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .v_dim = s.v_dim,
          .window = s.window,
          .score_scale = c.options().constants.score_scale};
}

template <class Real>
void attend(OpContext<Real>& c) {
  if (c.op().batch >= 0) return attend_in_batch(c);
  if (c.op().match == kGatheredAll) return attend_to_all(c);
  if (is_zigzag(c.op())) return attend_in_ring(c);
  const Matrix<Real>& q = c.in(0);
  const ContextKeys<Real> context(c, q.rows, c.in(1).rows);
  const Matrix<Real> k = context.seen(c.in(1)), v = context.seen(c.in(2));
  const AttentionShape shape = attention_shape(c, q.rows, context.keys());
  Matrix<Real> o(q.rows, shape.heads * shape.v_dim), lse(q.rows, shape.heads);
  const bool kept = c.op().num_outputs > 2;
  Matrix<Real> probabilities(kept ? q.rows : 0, shape.heads * shape.keys);
  attention<Real>(shape, {q.view(), k.view(), v.view()}, {o.view(), lse.view(), probabilities.view()});
  c.out(0, std::move(o));
  c.out(1, std::move(lse));
  if (kept) c.out(2, std::move(probabilities));
}

template <class Real>
void attend_back(OpContext<Real>& c) {
  if (c.op().batch >= 0) return attend_back_in_batch(c);
  if (c.op().match == kGatheredAll) return attend_back_to_all(c);
  if (is_zigzag(c.op())) return attend_back_in_ring(c);
  const Matrix<Real>&d_o = c.in(0), &q = c.in(1), &o = c.in(4), &lse = c.in(5);
  const ContextKeys<Real> context(c, q.rows, c.in(2).rows);
  const Matrix<Real> k = context.seen(c.in(2)), v = context.seen(c.in(3));
  const std::span<const Real> probabilities =
      c.op().num_inputs > 6 ? c.in(6).view() : std::span<const Real>();
  Matrix<Real> dq(q.rows, q.columns), dk(k.rows, k.columns), dv(v.rows, v.columns);
  attention_grad<Real>(attention_shape(c, q.rows, context.keys()), d_o.view(), {q.view(), k.view(), v.view()},
                       {o.view(), lse.view(), probabilities}, {dq.view(), dk.view(), dv.view()});
  c.out(0, std::move(dq));
  c.out(1, context.gathered(dk));
  c.out(2, context.gathered(dv));
}

// kv holds [nope | v] of each head; a head's key is [nope | rope], the rope part being the same for all
// heads.
struct LatentColumns {
  std::int64_t heads, nope, rope, v;
  explicit LatentColumns(const Shape& s) : heads(s.heads), nope(s.head_dim - s.k), rope(s.k), v(s.v_dim) {}
};

template <class Real>
void mla_keys(OpContext<Real>& c) {
  const LatentColumns d(c.shape());
  const Matrix<Real>&kv = c.in(0), &rope = c.in(1);
  Matrix<Real> k(kv.rows, d.heads * (d.nope + d.rope)), v(kv.rows, d.heads * d.v);
  for (std::int64_t r = 0; r < kv.rows; ++r) {
    for (std::int64_t h = 0; h < d.heads; ++h) {
      const Real* from = kv.row(r) + h * (d.nope + d.v);
      Real* key = k.row(r) + h * (d.nope + d.rope);
      std::copy_n(from, d.nope, key);
      std::copy_n(rope.row(r), d.rope, key + d.nope);
      std::copy_n(from + d.nope, d.v, v.row(r) + h * d.v);
    }
  }
  c.out(0, std::move(k));
  c.out(1, std::move(v));
}

template <class Real>
void mla_keys_back(OpContext<Real>& c) {
  const LatentColumns d(c.shape());
  const Matrix<Real>&dk = c.in(0), &dv = c.in(1);
  Matrix<Real> dkv(dk.rows, d.heads * (d.nope + d.v)), drope(dk.rows, d.rope);
  for (std::int64_t r = 0; r < dk.rows; ++r) {
    for (std::int64_t h = 0; h < d.heads; ++h) {
      const Real* dkey = dk.row(r) + h * (d.nope + d.rope);
      Real* to = dkv.row(r) + h * (d.nope + d.v);
      std::copy_n(dkey, d.nope, to);
      std::copy_n(dv.row(r) + h * d.v, d.v, to + d.nope);
      for (std::int64_t i = 0; i < d.rope; ++i) drope.row(r)[i] += dkey[d.nope + i];
    }
  }
  c.out(0, std::move(dkv));
  c.out(1, std::move(drope));
}

}  // namespace

template <class Real>
void compute_attention(OpContext<Real>& c) {
  const OpKind kind = c.op().kind;
  if (kind == OpKind::kRotary) return rotary(c, Turn::kForward);
  if (kind == OpKind::kRotaryGrad) return rotary(c, Turn::kBack);
  if (kind == OpKind::kAttention) return attend(c);
  if (kind == OpKind::kAttentionGrad) return attend_back(c);
  if (kind == OpKind::kMlaKeys) return mla_keys(c);
  CHECK(kind == OpKind::kMlaKeysGrad, fmt::format("{} is not of attention", to_string(kind)));
  mla_keys_back(c);
}

template void compute_attention(OpContext<float>&);
template void compute_attention(OpContext<double>&);

}  // namespace moebius
