#include "real/host/host_kernels_batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/matrix.h"

namespace moebius {
namespace {

template <class Real>
Real dot(const Real* a, const Real* b, std::int64_t count) {
  Real sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// One head of one query over the rows of its keys, oldest first.
template <class Real>
void attend(const PagedShape& s, std::int64_t head, const Real* q, const std::vector<const Real*>& rows,
            Real* o) {
  const std::int64_t kv_head = head * s.kv_heads / s.heads;
  std::vector<Real> p(rows.size());
  for (std::size_t j = 0; j < rows.size(); ++j)
    p[j] = dot(q, rows[j] + kv_head * s.head_dim, s.head_dim) * static_cast<Real>(s.scale);
  const Real maximum = *std::max_element(p.begin(), p.end());
  Real sum = 0;
  for (Real& score : p) sum += score = std::exp(score - maximum);
  std::fill_n(o, s.v_dim, Real(0));
  for (std::size_t j = 0; j < rows.size(); ++j)
    add_scaled(p[j] / sum, rows[j] + s.value_column(kv_head), s.v_dim, o);
}

template <class Real>
void check_sizes(const PagedShape& s, const Batch& batch, std::span<const Real> q, std::span<Real> o) {
  const auto rows = static_cast<std::size_t>(batch.rows());
  const bool columns = s.shared_values() || s.columns == s.kv_heads * (s.head_dim + s.v_dim);
  CHECK(columns && s.columns <= s.cache_columns && q.size() == rows * s.heads * s.head_dim &&
            o.size() == rows * s.heads * s.v_dim,
        fmt::format("{} rows, {} heads: q {}, o {}, {} columns of the cache", rows, s.heads, q.size(),
                    o.size(), s.columns));
}

// Positions of the keys that a query sees, oldest first.
template <class Real>
std::vector<std::int32_t> seen_keys(const PagedShape& s, std::int32_t position, std::int64_t row,
                                    std::span<const Real> chosen) {
  std::vector<std::int32_t> seen;
  if (s.chosen > 0) {
    for (const Real key : chosen.subspan(row * s.chosen, s.chosen))
      if (key >= 0) seen.push_back(static_cast<std::int32_t>(key));
    return seen;
  }
  const auto first = s.window > 0 ? std::max<std::int64_t>(0, position + 1 - s.window) : 0;
  for (auto key = static_cast<std::int32_t>(first); key <= position; ++key) seen.push_back(key);
  return seen;
}

}  // namespace

template <class Real>
void paged_attention(const PagedShape& s, const Batch& batch, std::span<const Real> q,
                     std::span<const Real> cache, std::span<const Real> chosen, std::span<Real> o) {
  check_sizes(s, batch, q, o);
  std::int64_t row = 0;
  for (const BatchSequence& sequence : batch.sequences) {
    for (std::int32_t position = sequence.past; position < sequence.length(); ++position, ++row) {
      std::vector<const Real*> keys;
      for (const std::int32_t key : seen_keys(s, position, row, chosen))
        keys.push_back(&cache[batch.slot(sequence, key) * s.cache_columns]);
      for (std::int64_t head = 0; head < s.heads; ++head)
        attend(s, head, &q[(row * s.heads + head) * s.head_dim], keys, &o[(row * s.heads + head) * s.v_dim]);
    }
  }
}

template <class Real>
void index_scores(const IndexShape& s, const Batch& batch, std::span<const Real> q,
                  std::span<const Real> cache, std::span<const Real> weights, std::span<Real> scores) {
  const std::int64_t first_column = s.cache_columns - s.head_dim;
  std::int64_t row = 0;
  for (const BatchSequence& sequence : batch.sequences) {
    for (std::int32_t position = sequence.past; position < sequence.length(); ++position, ++row) {
      for (std::int32_t key = 0; key <= position; ++key) {
        const Real* k = &cache[batch.slot(sequence, key) * s.cache_columns + first_column];
        Real sum = 0;
        for (std::int64_t head = 0; head < s.heads; ++head)
          sum += weights[row * s.heads + head] *
                 std::max(Real(0), dot(&q[(row * s.heads + head) * s.head_dim], k, s.head_dim));
        scores[row * s.columns + key] = sum;
      }
    }
  }
}

template <class Real>
void top_keys(std::int64_t count, const Batch& batch, std::int64_t columns, std::span<const Real> scores,
              std::span<Real> chosen) {
  std::int64_t row = 0;
  std::vector<std::int32_t> keys;
  for (const BatchSequence& sequence : batch.sequences) {
    for (std::int32_t position = sequence.past; position < sequence.length(); ++position, ++row) {
      keys.resize(position + 1);
      std::iota(keys.begin(), keys.end(), 0);
      const Real* of_row = &scores[row * columns];
      std::stable_sort(keys.begin(), keys.end(),
                       [of_row](std::int32_t a, std::int32_t b) { return of_row[a] > of_row[b]; });
      if (position + 1 > count) keys.resize(count);
      std::sort(keys.begin(), keys.end());
      const auto to = chosen.subspan(row * count, count);
      std::fill(std::copy(keys.begin(), keys.end(), to.begin()), to.end(), Real(-1));
    }
  }
}

template <class Real>
void absorb_queries(const AbsorbShape& s, std::span<const Real> q, std::span<const Real> map,
                    std::span<Real> wide) {
  const std::int64_t width = s.nope + s.rope, result = s.latent + s.rope;
  const std::int64_t count = static_cast<std::int64_t>(q.size()) / width;  // rows times heads
  for (std::int64_t i = 0; i < count; ++i) {
    const Real *from = &q[i * width], *of_head = &map[i % s.heads * (s.nope + s.v_dim) * s.latent];
    Real* to = &wide[i * result];
    std::fill_n(to, s.latent, Real(0));
    for (std::int64_t d = 0; d < s.nope; ++d) add_scaled(from[d], of_head + d * s.latent, s.latent, to);
    std::copy_n(from + s.nope, s.rope, to + s.latent);
  }
}

template <class Real>
void absorbed_values(const AbsorbShape& s, std::span<const Real> x, std::span<const Real> map,
                     std::span<Real> y) {
  const std::int64_t count = static_cast<std::int64_t>(x.size()) / s.latent;
  for (std::int64_t i = 0; i < count; ++i) {
    const Real* of_head = &map[(i % s.heads * (s.nope + s.v_dim) + s.nope) * s.latent];
    for (std::int64_t d = 0; d < s.v_dim; ++d)
      y[i * s.v_dim + d] = dot(&x[i * s.latent], of_head + d * s.latent, s.latent);
  }
}

template void paged_attention(const PagedShape&, const Batch&, std::span<const float>, std::span<const float>,
                              std::span<const float>, std::span<float>);
template void index_scores(const IndexShape&, const Batch&, std::span<const float>, std::span<const float>,
                           std::span<const float>, std::span<float>);
template void top_keys(std::int64_t, const Batch&, std::int64_t, std::span<const float>, std::span<float>);
template void paged_attention(const PagedShape&, const Batch&, std::span<const double>,
                              std::span<const double>, std::span<const double>, std::span<double>);
template void index_scores(const IndexShape&, const Batch&, std::span<const double>, std::span<const double>,
                           std::span<const double>, std::span<double>);
template void top_keys(std::int64_t, const Batch&, std::int64_t, std::span<const double>, std::span<double>);
template void absorb_queries(const AbsorbShape&, std::span<const float>, std::span<const float>,
                             std::span<float>);
template void absorb_queries(const AbsorbShape&, std::span<const double>, std::span<const double>,
                             std::span<double>);
template void absorbed_values(const AbsorbShape&, std::span<const float>, std::span<const float>,
                              std::span<float>);
template void absorbed_values(const AbsorbShape&, std::span<const double>, std::span<const double>,
                              std::span<double>);

}  // namespace moebius
