#include "real/host/host_kernels_batch.h"

#include <algorithm>
#include <cmath>
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
  const bool columns = s.shared_values() || s.cache_columns == s.kv_heads * (s.head_dim + s.v_dim);
  CHECK(columns && q.size() == rows * s.heads * s.head_dim && o.size() == rows * s.heads * s.v_dim,
        fmt::format("{} rows, {} heads: q {}, o {}, {} columns of the cache", rows, s.heads, q.size(),
                    o.size(), s.cache_columns));
}

}  // namespace

template <class Real>
void paged_attention(const PagedShape& s, const Batch& batch, std::span<const Real> q,
                     std::span<const Real> cache, std::span<Real> o) {
  check_sizes(s, batch, q, o);
  std::int64_t row = 0;
  for (const BatchSequence& sequence : batch.sequences) {
    for (std::int32_t position = sequence.past; position < sequence.length(); ++position, ++row) {
      const auto first = s.window > 0 ? std::max<std::int64_t>(0, position + 1 - s.window) : 0;
      std::vector<const Real*> keys;
      for (auto key = static_cast<std::int32_t>(first); key <= position; ++key)
        keys.push_back(&cache[batch.slot(sequence, key) * s.cache_columns]);
      for (std::int64_t head = 0; head < s.heads; ++head)
        attend(s, head, &q[(row * s.heads + head) * s.head_dim], keys, &o[(row * s.heads + head) * s.v_dim]);
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
                              std::span<float>);
template void paged_attention(const PagedShape&, const Batch&, std::span<const double>,
                              std::span<const double>, std::span<double>);
template void absorb_queries(const AbsorbShape&, std::span<const float>, std::span<const float>,
                             std::span<float>);
template void absorb_queries(const AbsorbShape&, std::span<const double>, std::span<const double>,
                             std::span<double>);
template void absorbed_values(const AbsorbShape&, std::span<const float>, std::span<const float>,
                              std::span<float>);
template void absorbed_values(const AbsorbShape&, std::span<const double>, std::span<const double>,
                              std::span<double>);

}  // namespace moebius
