#include "workloads/cost/serial_law.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace moebius {
namespace {

constexpr double kSingular = 1e-12;  // of a pivot: columns were scaled to 1

struct NormalEquations {
  std::array<SerialTerms, kSerialTerms> matrix = {};
  SerialTerms right = {};
};

// Rows are divided by their times, columns by `scale`.
NormalEquations equations_of(std::span<const MeasuredTerms> measured, const SerialTerms& scale) {
  NormalEquations sums;
  for (const MeasuredTerms& one : measured)
    for (std::size_t i = 0; i < kSerialTerms; ++i) {
      const double left = one.terms[i] / one.seconds / scale[i];
      sums.right[i] += left;
      for (std::size_t j = 0; j < kSerialTerms; ++j)
        sums.matrix[i][j] += left * one.terms[j] / one.seconds / scale[j];
    }
  return sums;
}

// Gauss and Jordan over the terms of `subset` (bits); the others are zero. Nothing where it is singular.
std::optional<SerialTerms> solve(NormalEquations e, unsigned subset) {
  const auto in = [&](std::size_t i) { return (subset >> i & 1U) != 0; };
  for (std::size_t pivot = 0; pivot < kSerialTerms; ++pivot) {
    if (!in(pivot)) continue;
    if (e.matrix[pivot][pivot] < kSingular) return {};
    for (std::size_t row = 0; row < kSerialTerms; ++row) {
      if (row == pivot || !in(row)) continue;
      const double factor = e.matrix[row][pivot] / e.matrix[pivot][pivot];
      for (std::size_t k = 0; k < kSerialTerms; ++k) e.matrix[row][k] -= factor * e.matrix[pivot][k];
      e.right[row] -= factor * e.right[pivot];
    }
  }
  SerialTerms found = {};
  for (std::size_t i = 0; i < kSerialTerms; ++i)
    if (in(i)) found[i] = e.right[i] / e.matrix[i][i];
  return found;
}

double squared_errors(std::span<const MeasuredTerms> measured, const SerialTerms& constants) {
  return std::accumulate(measured.begin(), measured.end(), 0.0, [&](double sum, const MeasuredTerms& one) {
    return sum + std::pow(serial_seconds(constants, one.terms) / one.seconds - 1, 2);
  });
}

// Root of the mean square of each column; 1 where the op has nothing of it.
SerialTerms scale_of(std::span<const MeasuredTerms> measured) {
  SerialTerms scale = {};
  for (std::size_t i = 0; i < kSerialTerms; ++i) {
    for (const MeasuredTerms& one : measured) scale[i] += std::pow(one.terms[i] / one.seconds, 2);
    scale[i] = scale[i] > 0 ? std::sqrt(scale[i] / static_cast<double>(measured.size())) : 1;
  }
  return scale;
}

}  // namespace

double serial_seconds(const SerialTerms& constants, const SerialTerms& terms) {
  return std::inner_product(constants.begin(), constants.end(), terms.begin(), 0.0);
}

// The best of all subsets of the terms whose constants come out positive is the best without negative ones.
SerialTerms fit_serial_law(std::span<const MeasuredTerms> measured) {
  SerialTerms best = {};
  if (measured.size() < 2 * kSerialTerms) return best;
  const SerialTerms scale = scale_of(measured);
  const NormalEquations equations = equations_of(measured, scale);
  double least = 1e300;
  for (unsigned subset = 1; subset < 1U << kSerialTerms; ++subset) {
    auto found = solve(equations, subset);
    if (!found || std::any_of(found->begin(), found->end(), [](double one) { return !(one >= 0); })) continue;
    for (std::size_t i = 0; i < kSerialTerms; ++i) (*found)[i] /= scale[i];
    const double errors = squared_errors(measured, *found);
    if (errors >= least) continue;
    least = errors;
    best = *found;
  }
  return best;
}

}  // namespace moebius
