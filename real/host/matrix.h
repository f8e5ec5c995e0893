// A row-major matrix of values: what a tensor holds while it is alive.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace moebius {

template <class Real>
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<Real> values;

  Matrix() = default;
  Matrix(std::int64_t num_rows, std::int64_t num_columns)
      : rows(num_rows), columns(num_columns), values(num_rows * num_columns, Real(0)) {}

  std::span<const Real> view() const { return values; }
  std::span<Real> view() { return values; }
  Real* row(std::int64_t r) { return values.data() + r * columns; }
  const Real* row(std::int64_t r) const { return values.data() + r * columns; }
};

// y += a * x. Inner loops are written in this form because it vectorises without reordering sums.
template <class Real>
void add_scaled(Real a, const Real* x, std::int64_t count, Real* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] += a * x[i];
}

}  // namespace moebius
