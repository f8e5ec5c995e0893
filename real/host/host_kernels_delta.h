// Gated delta networks on the CPU: their convolution and their rule, row by row. Matrices are row-major.
#pragma once

#include <cstdint>
#include <span>

namespace moebius {

// x[rows, columns] of one sequence -> y: silu of the sum over i < width of weight[column, i] times the row
// width-1-i before. `before`: the width-1 rows before the first one, oldest first, then the last ones of x.
struct ConvolutionShape {
  std::int64_t columns = 0, width = 0;
};
template <class Real>
void convolve(const ConvolutionShape& shape, std::span<const Real> x, std::span<const Real> weight,
              std::span<Real> before, std::span<Real> y);

// The rule of kDeltaRule (models/op_kind.h) over the rows of one sequence: qkv[rows, 2*key_heads*key_dim +
// heads*value_dim], gates[rows, 2*heads] (b, then a), decay[2, heads]; state[heads, key_dim, value_dim] goes
// from row to row and stays as the last one leaves it. Lengths of queries and keys are roots of the sum of
// their squares and kLengthEpsilon (fla/modules/l2norm.py).
inline constexpr double kLengthEpsilon = 1e-6;
struct DeltaRuleShape {
  std::int64_t heads = 1, key_heads = 1, key_dim = 0, value_dim = 0;
  std::int64_t columns() const { return 2 * key_heads * key_dim + heads * value_dim; }
};
template <class Real>
struct DeltaRuleInputs {
  std::span<const Real> qkv, gates, decay;
};
template <class Real>
void delta_rule(const DeltaRuleShape& shape, const DeltaRuleInputs<Real>& inputs, std::span<Real> state,
                std::span<Real> o);

}  // namespace moebius
