#include "real/host/host_kernels_delta.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/host/matrix.h"
#include "real/host/sigmoid.h"

namespace moebius {
namespace {

// log(1 + exp(x)) without an overflow.
template <class Real>
Real softplus(Real x) {
  return std::max(x, Real(0)) + std::log1p(std::exp(-std::abs(x)));
}

// A vector over its length, times `scale`.
template <class Real>
void normalise(const Real* x, std::int64_t columns, Real scale, Real* y) {
  Real squares = static_cast<Real>(kLengthEpsilon);
  for (std::int64_t i = 0; i < columns; ++i) squares += x[i] * x[i];
  const Real factor = scale / std::sqrt(squares);
  for (std::int64_t i = 0; i < columns; ++i) y[i] = x[i] * factor;
}

// One row of one value head.
template <class Real>
struct HeadRow {
  const Real *q, *k, *v;  // queries and keys normalised
  Real decay, beta;
};

// `error`: value_dim numbers of scratch.
template <class Real>
void step(const DeltaRuleShape& s, const HeadRow<Real>& row, Real* state, Real* error, Real* o) {
  const std::int64_t n = s.value_dim;
  for (std::int64_t i = 0; i < s.key_dim * n; ++i) state[i] *= row.decay;
  std::fill_n(error, n, Real(0));
  for (std::int64_t i = 0; i < s.key_dim; ++i) add_scaled(-row.k[i], state + i * n, n, error);
  for (std::int64_t j = 0; j < n; ++j) error[j] = row.beta * (row.v[j] + error[j]);
  for (std::int64_t i = 0; i < s.key_dim; ++i) add_scaled(row.k[i], error, n, state + i * n);
  std::fill_n(o, n, Real(0));
  for (std::int64_t i = 0; i < s.key_dim; ++i) add_scaled(row.q[i], state + i * n, n, o);
}

template <class Real>
void check_sizes(const DeltaRuleShape& s, const DeltaRuleInputs<Real>& in, std::size_t state, std::size_t o) {
  const auto rows = in.gates.size() / (2 * static_cast<std::size_t>(s.heads));
  CHECK(in.qkv.size() == rows * s.columns() && o == rows * s.heads * s.value_dim &&
            state == static_cast<std::size_t>(s.heads * s.key_dim * s.value_dim) &&
            in.decay.size() == 2 * static_cast<std::size_t>(s.heads),
        fmt::format("{} rows, {} heads: qkv {}, state {}, o {}", rows, s.heads, in.qkv.size(), state, o));
}

}  // namespace

template <class Real>
void convolve(const ConvolutionShape& s, std::span<const Real> x, std::span<const Real> weight,
              std::span<Real> before, std::span<Real> y) {
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / s.columns, kept = s.width - 1;
  // A row by its distance from the first one; earlier ones have negative distances.
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return row < 0 ? before[(kept + row) * s.columns + column] : x[row * s.columns + column];
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < s.columns; ++column) {
      Real sum = 0;
      for (std::int64_t i = 0; i < s.width; ++i)
        sum += weight[column * s.width + i] * at(row - kept + i, column);
      y[row * s.columns + column] = sum * sigmoid(sum);
    }
  }
  for (std::int64_t i = 0; i < kept; ++i)  // oldest first: what it reads stands behind what it has written
    for (std::int64_t column = 0; column < s.columns; ++column)
      before[i * s.columns + column] = at(rows - kept + i, column);
}

template <class Real>
void delta_rule(const DeltaRuleShape& s, const DeltaRuleInputs<Real>& in, std::span<Real> state,
                std::span<Real> o) {
  check_sizes(s, in, state.size(), o.size());
  const std::int64_t rows = static_cast<std::int64_t>(in.gates.size()) / (2 * s.heads);
  const Real scale = 1 / std::sqrt(static_cast<Real>(s.key_dim));
  std::vector<Real> q(s.key_dim), k(s.key_dim), error(s.value_dim);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Real *qkv = &in.qkv[row * s.columns()], *gates = &in.gates[row * 2 * s.heads];
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const std::int64_t key_head = head * s.key_heads / s.heads;
      normalise(qkv + key_head * s.key_dim, s.key_dim, scale, q.data());
      normalise(qkv + (s.key_heads + key_head) * s.key_dim, s.key_dim, Real(1), k.data());
      const Real slowed = softplus(gates[s.heads + head] + in.decay[s.heads + head]);
      const HeadRow<Real> of{q.data(), k.data(), qkv + 2 * s.key_heads * s.key_dim + head * s.value_dim,
                             std::exp(-std::exp(in.decay[head]) * slowed), sigmoid(gates[head])};
      step(s, of, &state[head * s.key_dim * s.value_dim], error.data(),
           &o[(row * s.heads + head) * s.value_dim]);
    }
  }
}

template void convolve(const ConvolutionShape&, std::span<const float>, std::span<const float>,
                       std::span<float>, std::span<float>);
template void convolve(const ConvolutionShape&, std::span<const double>, std::span<const double>,
                       std::span<double>, std::span<double>);
template void delta_rule(const DeltaRuleShape&, const DeltaRuleInputs<float>&, std::span<float>,
                         std::span<float>);
template void delta_rule(const DeltaRuleShape&, const DeltaRuleInputs<double>&, std::span<double>,
                         std::span<double>);

}  // namespace moebius
