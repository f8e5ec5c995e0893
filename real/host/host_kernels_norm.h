// RMSNorm and rotary positions on the CPU, forward and backward. Matrices are row-major.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/constants.h"

namespace moebius {

inline constexpr double kNormEpsilon = 1e-6;  // added to the mean square where a model says nothing else

// y = x * weight / sqrt(mean(x^2) + epsilon), row by row of weight.size() columns.
template <class Real>
void rms_norm(std::span<const Real> x, std::span<const Real> weight, std::span<Real> y,
              double epsilon = kNormEpsilon);

// The same with the means of x^2 known, of rows whose columns ranks share.
template <class Real>
void rms_norm(std::span<const Real> x, std::span<const Real> weight, std::span<const double> mean_squares,
              std::span<Real> y, double epsilon);

template <class Real>
struct NormGradient {
  std::span<Real> dx;       // overwritten
  std::span<Real> dweight;  // added to
};
template <class Real>
void rms_norm_grad(std::span<const Real> dy, std::span<const Real> x, std::span<const Real> weight,
                   const NormGradient<Real>& gradient, double epsilon = kNormEpsilon);
// The same with the means of x^2 and of dy*x*weight known.
struct KnownMeans {
  std::span<const double> squares, projections;
};
template <class Real>
void rms_norm_grad(std::span<const Real> dy, std::span<const Real> x, std::span<const Real> weight,
                   const KnownMeans& means, const NormGradient<Real>& gradient, double epsilon);

// Of each row of so many columns the mean of x^2, and of dy*x*weight.
template <class Real>
std::vector<double> mean_squares(std::span<const Real> x, std::size_t columns);
template <class Real>
std::vector<double> mean_projections(std::span<const Real> dy, std::span<const Real> x,
                                     std::span<const Real> weight);

// Rows are positions first_position, first_position+1, ... of sequences of `sequence_rows` rows each; the
// last `rotated` columns of each of `heads` equal column blocks turn, (i, i + rotated/2) as a pair by
// position * rotary_frequency(i), and grow by the magnitude (models/constants.h).
struct RotaryShape {
  std::int64_t columns = 0, heads = 1, rotated = 0, sequence_rows = 0, first_position = 0;
  Rotary rotary = {};
};
enum class Turn { kForward, kBack };  // kBack is the gradient, and the inverse where the magnitude is 1
template <class Real>
void rotate(std::span<Real> values, const RotaryShape& shape, Turn turn);

}  // namespace moebius
