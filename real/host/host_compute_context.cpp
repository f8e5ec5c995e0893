// Attention of ranks that share sequences without gathering keys (workloads/schedule/context_part.h).
#include <algorithm>
#include <cmath>
#include <limits>

#include "hw/error.h"
#include "real/host/context_rows.h"
#include "real/host/host_kernels_attention.h"

namespace moebius {
namespace {

// What the rows of a member see of the block of another: of each sequence so many rows from a first one on.
struct RingPart {
  std::int64_t first_query = 0, queries = 0, first_key = 0, keys = 0;
  bool causal = false;
};

// Chunks i and 2n-1-i of member i: of an earlier member's all rows see the first chunk alone; of a later
// one's both chunks are seen by the second half of the rows; its own are a sequence in order.
template <class Real>
RingPart ring_part(const OpContext<Real>& c, std::int64_t rows) {
  const int members = c.size_of(GroupRole::kContext), mine = c.index_in(GroupRole::kContext);
  const int step = ring_step(c.op());
  if (step == 0) return {0, rows, 0, rows, true};
  const bool earlier = step <= mine;  // holder mine - step, or that of the round before
  CHECK(step < members && rows % 2 == 0, "step of a ring");
  if (earlier) return {0, rows, 0, rows / 2, false};
  return {rows / 2, rows / 2, 0, rows, false};
}

// Rows [first, first + count) of each sequence of `rows` rows.
template <class Real>
Matrix<Real> part_of(const Matrix<Real>& x, std::int64_t rows, std::int64_t first, std::int64_t count) {
  const std::int64_t sequences = x.rows / rows;
  Matrix<Real> part(sequences * count, x.columns);
  for (std::int64_t s = 0; s < sequences; ++s)
    std::copy_n(x.row(s * rows + first), count * x.columns, part.row(s * count));
  return part;
}

template <class Real>
Matrix<Real> widened(const Matrix<Real>& part, std::int64_t rows, std::int64_t first, std::int64_t count,
                     Real rest) {
  const std::int64_t sequences = part.rows / count;
  Matrix<Real> x(sequences * rows, part.columns);
  std::fill(x.values.begin(), x.values.end(), rest);
  for (std::int64_t s = 0; s < sequences; ++s)
    std::copy_n(part.row(s * count), count * part.columns, x.row(s * rows + first));
  return x;
}

template <class Real>
AttentionShape shape_of(const OpContext<Real>& c, std::int64_t queries, std::int64_t keys, bool causal) {
  const Shape& s = c.shape();
  return {.sequences = std::max(s.groups, 1),
          .queries = queries,
          .keys = keys,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .v_dim = s.v_dim,
          .window = s.window,
          .score_scale = c.options().constants.score_scale,
          .causal = causal};
}

// Rows gathered member by member in the order of sequences, and back.
template <class Real>
Matrix<Real> reordered(const OpContext<Real>& c, const Matrix<Real>& x, bool to_sequences) {
  const std::int64_t members = c.size_of(GroupRole::kContext), sequences = std::max(c.shape().groups, 1);
  const std::int64_t chunk = x.rows / sequences / members;
  Matrix<Real> y(x.rows, x.columns);
  for (std::int64_t m = 0; m < members; ++m) {
    for (std::int64_t s = 0; s < sequences; ++s) {
      const std::int64_t gathered = (m * sequences + s) * chunk, whole = (s * members + m) * chunk;
      std::copy_n(x.row(to_sequences ? gathered : whole), chunk * x.columns,
                  y.row(to_sequences ? whole : gathered));
    }
  }
  return y;
}

}  // namespace

template <class Real>
void attend_in_ring(OpContext<Real>& c) {
  const Matrix<Real>& all = c.in(0);
  const std::int64_t rows = all.rows / std::max(c.shape().groups, 1);
  const RingPart part = ring_part(c, rows);
  const Matrix<Real> q = part_of(all, rows, part.first_query, part.queries);
  const Matrix<Real> k = part_of(c.in(1), rows, part.first_key, part.keys);
  const Matrix<Real> v = part_of(c.in(2), rows, part.first_key, part.keys);
  const AttentionShape shape = shape_of(c, part.queries, part.keys, part.causal);
  Matrix<Real> o(q.rows, shape.heads * shape.v_dim), lse(q.rows, shape.heads);
  attention<Real>(shape, {q.view(), k.view(), v.view()}, {o.view(), lse.view()});
  const Real nothing = -std::numeric_limits<Real>::infinity();
  c.out(0, widened(o, rows, part.first_query, part.queries, Real(0)));
  c.out(1, widened(lse, rows, part.first_query, part.queries, nothing));
}

template <class Real>
void attend_back_in_ring(OpContext<Real>& c) {
  const Matrix<Real>& all = c.in(1);
  const std::int64_t rows = all.rows / std::max(c.shape().groups, 1);
  const RingPart part = ring_part(c, rows);
  const auto queries = [&](const Matrix<Real>& x) {
    return part_of(x, rows, part.first_query, part.queries);
  };
  const auto keys = [&](const Matrix<Real>& x) { return part_of(x, rows, part.first_key, part.keys); };
  const Matrix<Real> d_o = queries(c.in(0)), q = queries(all), k = keys(c.in(2)), v = keys(c.in(3));
  const Matrix<Real> o = queries(c.in(4)), lse = queries(c.in(5));
  Matrix<Real> dq(q.rows, q.columns), dk(k.rows, k.columns), dv(v.rows, v.columns);
  attention_grad<Real>(shape_of(c, part.queries, part.keys, part.causal), d_o.view(),
                       {q.view(), k.view(), v.view()}, {o.view(), lse.view()},
                       {dq.view(), dk.view(), dv.view()});
  c.out(0, widened(dq, rows, part.first_query, part.queries, Real(0)));
  c.out(1, widened(dk, rows, part.first_key, part.keys, Real(0)));
  c.out(2, widened(dv, rows, part.first_key, part.keys, Real(0)));
}

// lse = log(exp(a) + exp(b)); each result counts as exp(its lse - lse).
template <class Real>
void merge_attention(OpContext<Real>& c) {
  const Matrix<Real>&a = c.in(0), &lse_a = c.in(1), &b = c.in(2), &lse_b = c.in(3);
  const std::int64_t heads = lse_a.columns, width = a.columns / heads;
  Matrix<Real> o(a.rows, a.columns), lse(lse_a.rows, heads);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const Real most = std::max(lse_a.row(row)[h], lse_b.row(row)[h]);
      const Real left = std::exp(lse_a.row(row)[h] - most), right = std::exp(lse_b.row(row)[h] - most);
      lse.row(row)[h] = most + std::log(left + right);
      for (std::int64_t i = h * width; i < (h + 1) * width; ++i)
        o.row(row)[i] = (left * a.row(row)[i] + right * b.row(row)[i]) / (left + right);
    }
  }
  c.out(0, std::move(o));
  c.out(1, std::move(lse));
}

template <class Real>
void attend_to_all(OpContext<Real>& c) {
  const Matrix<Real> q = reordered(c, c.in(0), true), k = reordered(c, c.in(1), true),
                     v = reordered(c, c.in(2), true);
  const std::int64_t rows = q.rows / std::max(c.shape().groups, 1);
  const AttentionShape shape = shape_of(c, rows, rows, true);
  Matrix<Real> o(q.rows, shape.heads * shape.v_dim), lse(q.rows, shape.heads);
  attention<Real>(shape, {q.view(), k.view(), v.view()}, {o.view(), lse.view()});
  c.out(0, reordered(c, o, false));
  c.out(1, reordered(c, lse, false));
}

template <class Real>
void attend_back_to_all(OpContext<Real>& c) {
  std::vector<Matrix<Real>> x;
  x.reserve(6);
  for (int i = 0; i < 6; ++i) x.push_back(reordered(c, c.in(i), true));
  const std::int64_t rows = x[1].rows / std::max(c.shape().groups, 1);
  Matrix<Real> dq(x[1].rows, x[1].columns), dk(x[2].rows, x[2].columns), dv(x[3].rows, x[3].columns);
  attention_grad<Real>(shape_of(c, rows, rows, true), x[0].view(), {x[1].view(), x[2].view(), x[3].view()},
                       {x[4].view(), x[5].view()}, {dq.view(), dk.view(), dv.view()});
  c.out(0, reordered(c, dq, false));
  c.out(1, reordered(c, dk, false));
  c.out(2, reordered(c, dv, false));
}

template void attend_in_ring(OpContext<float>&);
template void attend_in_ring(OpContext<double>&);
template void attend_back_in_ring(OpContext<float>&);
template void attend_back_in_ring(OpContext<double>&);
template void merge_attention(OpContext<float>&);
template void merge_attention(OpContext<double>&);
template void attend_to_all(OpContext<float>&);
template void attend_to_all(OpContext<double>&);
template void attend_back_to_all(OpContext<float>&);
template void attend_back_to_all(OpContext<double>&);

}  // namespace moebius
