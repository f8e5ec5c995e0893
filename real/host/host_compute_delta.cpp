// Gated delta networks of serving on the CPU: each sequence of a batch with its own row of what is kept.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/host_kernels_delta.h"
#include "real/host/op_context.h"
#include "real/rounding.h"

namespace moebius {
namespace {

// What a sequence brings along: zeros before its first row.
template <class Real>
std::span<Real> row_kept(Matrix<Real>& kept, const BatchSequence& sequence) {
  CHECK(sequence.state >= 0 && sequence.state < kept.rows,
        fmt::format("row {} of {} states", sequence.state, kept.rows));
  const std::span<Real> row(kept.row(sequence.state), kept.columns);
  if (sequence.past == 0) std::fill(row.begin(), row.end(), Real(0));
  return row;
}

// Only what the op has written is rounded.
template <class Real>
void round_kept(OpContext<Real>& c, std::span<Real> row) {
  if (c.options().exact) return;
  std::vector<Real> values(row.begin(), row.end());
  round_matrix<Real>(values, 1, static_cast<std::int64_t>(values.size()), c.output_tensor(1).dtype);
  std::copy(values.begin(), values.end(), row.begin());
}

}  // namespace

template <class Real>
void convolve_batch(OpContext<Real>& c) {
  const Matrix<Real>&x = c.in(0), &weight = c.in(1);
  Matrix<Real> y(x.rows, x.columns);
  Matrix<Real>& kept = c.store().change(c.output_id(1));
  std::int64_t first = 0;
  for (const BatchSequence& sequence : c.batch().sequences) {
    const std::int64_t size = sequence.count * x.columns;
    const std::span<Real> before = row_kept(kept, sequence);
    convolve<Real>({x.columns, c.shape().k}, x.view().subspan(first, size), weight.view(), before,
                   y.view().subspan(first, size));
    round_kept(c, before);
    first += size;
  }
  c.out(0, std::move(y));
}

template <class Real>
void delta_rule_of_batch(OpContext<Real>& c) {
  const Shape& s = c.shape();
  const Matrix<Real>&qkv = c.in(0), &gates = c.in(1);
  const DeltaRuleShape shape{s.heads, s.kv_heads, s.head_dim, s.v_dim};
  Matrix<Real> o(qkv.rows, std::int64_t{s.heads} * s.v_dim);
  Matrix<Real>& kept = c.store().change(c.output_id(1));
  std::int64_t row = 0;
  for (const BatchSequence& sequence : c.batch().sequences) {
    const auto rows_of = [&](auto matrix) {
      return matrix->view().subspan(row * matrix->columns, sequence.count * matrix->columns);
    };
    const std::span<Real> state = row_kept(kept, sequence);
    delta_rule<Real>(shape, {rows_of(&qkv), rows_of(&gates), c.in(2).view()}, state, rows_of(&o));
    round_kept(c, state);
    row += sequence.count;
  }
  c.out(0, std::move(o));
}

template void convolve_batch(OpContext<float>&);
template void convolve_batch(OpContext<double>&);
template void delta_rule_of_batch(OpContext<float>&);
template void delta_rule_of_batch(OpContext<double>&);

}  // namespace moebius
