// RMSNorm and rotary positions on the CPU, forward and backward. Matrices are row-major.
#pragma once

#include <cstdint>
#include <span>

namespace moebius {

inline constexpr double kNormEpsilon = 1e-6;  // added to the mean square
inline constexpr double kRotaryBase = 10000;

// y = x * weight / sqrt(mean(x^2) + kNormEpsilon), row by row of weight.size() columns.
template <class Real>
void rms_norm(std::span<const Real> x, std::span<const Real> weight, std::span<Real> y);

template <class Real>
struct NormGradient {
  std::span<Real> dx;       // overwritten
  std::span<Real> dweight;  // added to
};
template <class Real>
void rms_norm_grad(std::span<const Real> dy, std::span<const Real> x, std::span<const Real> weight,
                   const NormGradient<Real>& gradient);

// Rows are positions first_position, first_position+1, ... of sequences of `sequence_rows` rows each; the
// last `rotated` columns of each of `heads` equal column blocks turn, (i, i + rotated/2) as a pair by
// position * kRotaryBase^(-2i/rotated).
struct RotaryShape {
  std::int64_t columns = 0, heads = 1, rotated = 0, sequence_rows = 0, first_position = 0;
};
enum class Turn { kForward, kBack };  // kBack is both the inverse and the gradient
template <class Real>
void rotate(std::span<Real> values, const RotaryShape& shape, Turn turn);

}  // namespace moebius
