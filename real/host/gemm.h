// Matrix product on the CPU: packed panels and a register tile; any strides, so that one routine serves
// forward (A*B^T), data gradient (A*B) and weight gradient (A^T*B).
#pragma once

#include <cstdint>
#include <span>

namespace moebius {

// A read-only matrix: element (r, c) is data[r*row_stride + c*column_stride].
template <class Real>
struct MatrixView {
  const Real* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride = 0, column_stride = 0;

  MatrixView transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

// A row-major view; CHECKs that `values` holds rows*columns elements.
template <class Real>
MatrixView<Real> row_major(std::span<const Real> values, std::int64_t rows, std::int64_t columns);

// c[a.rows, b.columns] (row-major, contiguous) += a * b. Sums over k run in a fixed order: equal inputs give
// equal bits.
template <class Real>
void add_product(const MatrixView<Real>& a, const MatrixView<Real>& b, std::span<Real> c);

}  // namespace moebius
