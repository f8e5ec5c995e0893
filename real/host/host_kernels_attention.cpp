#include "real/host/host_kernels_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/matrix.h"

namespace moebius {
namespace {

// Columns [first, first+width) of the `rows` rows of a matrix of `columns`, as [width][rows].
template <class Real>
std::vector<Real> transposed_block(const Real* matrix, std::int64_t rows, std::int64_t columns,
                                   std::int64_t width) {
  std::vector<Real> block(rows * width);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < width; ++c) block[c * rows + r] = matrix[r * columns + c];
  }
  return block;
}

// Where one head of one sequence stands in the operands.
struct Head {
  std::int64_t q, k, v, o, lse, p;                                            // first elements
  std::int64_t q_stride, k_stride, v_stride, o_stride, lse_stride, p_stride;  // from row to row
};

Head locate(const AttentionShape& s, std::int64_t sequence, std::int64_t head) {
  Head h;
  const std::int64_t kv_head = head * s.kv_heads / s.heads;
  h.q_stride = s.heads * s.head_dim;
  h.k_stride = s.kv_heads * s.head_dim;
  h.v_stride = s.kv_heads * s.v_dim;
  h.o_stride = s.heads * s.v_dim;
  h.lse_stride = s.heads;
  h.p_stride = s.heads * s.keys;
  h.q = sequence * s.queries * h.q_stride + head * s.head_dim;
  h.k = sequence * s.keys * h.k_stride + kv_head * s.head_dim;
  h.v = sequence * s.keys * h.v_stride + kv_head * s.v_dim;
  h.o = sequence * s.queries * h.o_stride + head * s.v_dim;
  h.lse = sequence * s.queries * h.lse_stride + head;
  h.p = sequence * s.queries * h.p_stride + head * s.keys;
  return h;
}

// The keys that query i sees: [first, last).
struct Seen {
  std::int64_t first, last;
};

Seen seen_by(const AttentionShape& s, std::int64_t i) {
  if (!s.causal) return {0, s.keys};
  const std::int64_t position = s.keys - s.queries + i;
  return {s.window > 0 ? std::max<std::int64_t>(0, position + 1 - s.window) : 0, position + 1};
}

// row[first..last) = a * columns^T, where columns is [width][keys].
template <class Real>
void multiply_columns(const Real* a, std::int64_t width, const std::vector<Real>& columns, std::int64_t keys,
                      Seen seen, std::vector<Real>& row) {
  std::fill(row.begin() + seen.first, row.begin() + seen.last, Real(0));
  for (std::int64_t d = 0; d < width; ++d) {
    add_scaled(a[d], &columns[d * keys + seen.first], seen.last - seen.first, &row[seen.first]);
  }
}

template <class Real>
void check_sizes(const AttentionShape& s, const AttentionOperands<Real>& x) {
  const auto fits = [](std::span<const Real> values, std::int64_t count) {
    return static_cast<std::int64_t>(values.size()) == count;
  };
  CHECK(fits(x.q, s.sequences * s.queries * s.heads * s.head_dim) &&
            fits(x.k, s.sequences * s.keys * s.kv_heads * s.head_dim) &&
            fits(x.v, s.sequences * s.keys * s.kv_heads * s.v_dim),
        fmt::format("q {} k {} v {} for {} sequences of {} queries, {} keys", x.q.size(), x.k.size(),
                    x.v.size(), s.sequences, s.queries, s.keys));
  CHECK((s.queries <= s.keys || !s.causal) && s.heads % s.kv_heads == 0,
        fmt::format("{} queries, {} keys, {} and {} heads", s.queries, s.keys, s.heads, s.kv_heads));
}

template <class Real>
void attend(const AttentionShape& s, const Head& h, const AttentionOperands<Real>& x,
            const AttentionResult<Real>& result) {
  const Real scale = static_cast<Real>(s.score_scale / std::sqrt(static_cast<double>(s.head_dim)));
  const std::vector<Real> keys = transposed_block(&x.k[h.k], s.keys, h.k_stride, s.head_dim);
  std::vector<Real> row(s.keys);
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const Seen seen = seen_by(s, i);
    multiply_columns(&x.q[h.q + i * h.q_stride], s.head_dim, keys, s.keys, seen, row);
    const Real maximum = *std::max_element(row.begin() + seen.first, row.begin() + seen.last) * scale;
    Real sum = 0;
    for (std::int64_t j = seen.first; j < seen.last; ++j) sum += row[j] = std::exp(row[j] * scale - maximum);
    Real* o = &result.o[h.o + i * h.o_stride];
    std::fill_n(o, s.v_dim, Real(0));
    for (std::int64_t j = seen.first; j < seen.last; ++j) {
      add_scaled(row[j] / sum, &x.v[h.v + j * h.v_stride], s.v_dim, o);
    }
    result.lse[h.lse + i * h.lse_stride] = maximum + std::log(sum);
    if (result.probabilities.empty()) continue;
    for (std::int64_t j = seen.first; j < seen.last; ++j)
      result.probabilities[h.p + i * h.p_stride + j] = row[j] / sum;
  }
}

// With p the probabilities, D = sum(do*o): dv += p^T do; ds = p*(do v^T - D)/sqrt(d); dq = ds k; dk += ds^T
// q.
template <class Real>
void attend_back(const AttentionShape& s, const Head& h, std::span<const Real> d_o,
                 const AttentionOperands<Real>& x, const AttentionForward<Real>& forward,
                 const AttentionGradient<Real>& gradient) {
  const Real scale = static_cast<Real>(s.score_scale / std::sqrt(static_cast<double>(s.head_dim)));
  const std::vector<Real> keys = transposed_block(&x.k[h.k], s.keys, h.k_stride, s.head_dim);
  const std::vector<Real> values = transposed_block(&x.v[h.v], s.keys, h.v_stride, s.v_dim);
  std::vector<Real> row(s.keys), d_row(s.keys);
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const Seen seen = seen_by(s, i);
    const Real* q = &x.q[h.q + i * h.q_stride];
    const Real* dout = &d_o[h.o + i * h.o_stride];
    multiply_columns(q, s.head_dim, keys, s.keys, seen, row);
    multiply_columns(dout, s.v_dim, values, s.keys, seen, d_row);
    double dot = 0;
    for (std::int64_t d = 0; d < s.v_dim; ++d) {
      dot += static_cast<double>(dout[d]) * forward.o[h.o + i * h.o_stride + d];
    }
    const Real lse = forward.lse[h.lse + i * h.lse_stride];
    for (std::int64_t j = seen.first; j < seen.last; ++j) {
      const Real p = forward.probabilities.empty() ? std::exp(row[j] * scale - lse)
                                                   : forward.probabilities[h.p + i * h.p_stride + j];
      const Real ds = p * (d_row[j] - static_cast<Real>(dot)) * scale;
      add_scaled(p, dout, s.v_dim, &gradient.dv[h.v + j * h.v_stride]);
      add_scaled(ds, &x.k[h.k + j * h.k_stride], s.head_dim, &gradient.dq[h.q + i * h.q_stride]);
      add_scaled(ds, q, s.head_dim, &gradient.dk[h.k + j * h.k_stride]);
    }
  }
}

}  // namespace

template <class Real>
void attention(const AttentionShape& shape, const AttentionOperands<Real>& operands,
               const AttentionResult<Real>& result) {
  check_sizes(shape, operands);
  for (std::int64_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      attend(shape, locate(shape, sequence, head), operands, result);
    }
  }
}

template <class Real>
void attention_grad(const AttentionShape& shape, std::span<const Real> d_o,
                    const AttentionOperands<Real>& operands, const AttentionForward<Real>& forward,
                    const AttentionGradient<Real>& gradient) {
  check_sizes(shape, operands);
  for (std::int64_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      attend_back(shape, locate(shape, sequence, head), d_o, operands, forward, gradient);
    }
  }
}

template void attention(const AttentionShape&, const AttentionOperands<float>&,
                        const AttentionResult<float>&);
template void attention(const AttentionShape&, const AttentionOperands<double>&,
                        const AttentionResult<double>&);
template void attention_grad(const AttentionShape&, std::span<const float>, const AttentionOperands<float>&,
                             const AttentionForward<float>&, const AttentionGradient<float>&);
template void attention_grad(const AttentionShape&, std::span<const double>, const AttentionOperands<double>&,
                             const AttentionForward<double>&, const AttentionGradient<double>&);

}  // namespace moebius
