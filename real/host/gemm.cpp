#include "real/host/gemm.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

// The register tile: its sums stay in registers while k runs. Four rows of two 32-byte vectors are eight
// accumulators beside two operands and a broadcast, which a 16-register machine holds.
constexpr int kTileRows = 4;
constexpr int kTileColumns = 16;
constexpr std::int64_t kBlockDepth = 256;     // k of one packed panel: a panel of B stays in the first cache
constexpr std::int64_t kBlockColumns = 1024;  // columns of B packed at a time: the second cache

template <class Real>
using Tile = Real[kTileRows][kTileColumns];

// sums = a * b over `depth`; a is packed [depth][kTileRows], b [depth][kTileColumns].
template <class Real>
inline __attribute__((always_inline)) void tile_product(std::int64_t depth, const Real* a, const Real* b,
                                                        Tile<Real>& sums) {
  using Vector [[gnu::vector_size(32)]] = Real;
  using Loose [[gnu::vector_size(32), gnu::aligned(alignof(Real)), gnu::may_alias]] = Real;  // in memory
  constexpr int kLanes = 32 / sizeof(Real), kVectors = kTileColumns / kLanes;
  Vector local[kTileRows][kVectors] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    for (int j = 0; j < kVectors; ++j) {
      const Vector columns = *reinterpret_cast<const Loose*>(b + k * kTileColumns + j * kLanes);
      for (int i = 0; i < kTileRows; ++i) local[i][j] += a[k * kTileRows + i] * columns;
    }
  }
  for (int i = 0; i < kTileRows; ++i) {
    for (int j = 0; j < kVectors; ++j) *reinterpret_cast<Loose*>(&sums[i][j * kLanes]) = local[i][j];
  }
}

template <class Real>
using TileProduct = void (*)(std::int64_t, const Real*, const Real*, Tile<Real>&);

template <class Real>
void tile_portable(std::int64_t depth, const Real* a, const Real* b, Tile<Real>& sums) {
  tile_product(depth, a, b, sums);
}

#if defined(__x86_64__)
// The same loops, compiled once more for processors that have wide vectors.
template <class Real>
__attribute__((target("avx2,fma"))) void tile_wide(std::int64_t depth, const Real* a, const Real* b,
                                                   Tile<Real>& sums) {
  tile_product(depth, a, b, sums);
}
#endif

template <class Real>
TileProduct<Real> pick_tile_product() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return tile_wide<Real>;
#endif
  return tile_portable<Real>;
}

// Rows [row, row+kTileRows) of a, columns [depth0, depth0+depth), zero beyond the matrix.
template <class Real>
void pack_rows(const MatrixView<Real>& a, std::int64_t row, std::int64_t depth0, std::int64_t depth,
               Real* packed) {
  const std::int64_t rows = std::min<std::int64_t>(kTileRows, a.rows - row);
  for (std::int64_t k = 0; k < depth; ++k) {
    const Real* source = a.data + row * a.row_stride + (depth0 + k) * a.column_stride;
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      packed[k * kTileRows + i] = i < rows ? source[i * a.row_stride] : Real(0);
    }
  }
}

template <class Real>
void pack_columns(const MatrixView<Real>& b, std::int64_t column, std::int64_t depth0, std::int64_t depth,
                  Real* packed) {
  const std::int64_t columns = std::min<std::int64_t>(kTileColumns, b.columns - column);
  for (std::int64_t k = 0; k < depth; ++k) {
    const Real* source = b.data + (depth0 + k) * b.row_stride + column * b.column_stride;
    for (std::int64_t j = 0; j < kTileColumns; ++j) {
      packed[k * kTileColumns + j] = j < columns ? source[j * b.column_stride] : Real(0);
    }
  }
}

// Adds the part of a tile that lies inside c, whose first element is (row, column) of the product.
template <class Real>
void add_tile(const Tile<Real>& sums, std::int64_t rows, std::int64_t columns, Real* c, std::int64_t stride) {
  for (std::int64_t i = 0; i < std::min<std::int64_t>(rows, kTileRows); ++i) {
    for (std::int64_t j = 0; j < std::min<std::int64_t>(columns, kTileColumns); ++j) {
      c[i * stride + j] += sums[i][j];
    }
  }
}

}  // namespace

template <class Real>
MatrixView<Real> row_major(std::span<const Real> values, std::int64_t rows, std::int64_t columns) {
  CHECK(static_cast<std::int64_t>(values.size()) == rows * columns,
        fmt::format("{} values, {} x {}", values.size(), rows, columns));
  return {values.data(), rows, columns, columns, 1};
}

template <class Real>
void add_product(const MatrixView<Real>& a, const MatrixView<Real>& b, std::span<Real> c) {
  CHECK(a.columns == b.rows && static_cast<std::int64_t>(c.size()) == a.rows * b.columns,
        fmt::format("[{},{}] * [{},{}] into {}", a.rows, a.columns, b.rows, b.columns, c.size()));
  const TileProduct<Real> product = pick_tile_product<Real>();
  std::vector<Real> packed_a(kBlockDepth * kTileRows), packed_b;
  for (std::int64_t column0 = 0; column0 < b.columns; column0 += kBlockColumns) {
    const std::int64_t tiles =
        (std::min(kBlockColumns, b.columns - column0) + kTileColumns - 1) / kTileColumns;
    for (std::int64_t depth0 = 0; depth0 < a.columns; depth0 += kBlockDepth) {
      const std::int64_t depth = std::min(kBlockDepth, a.columns - depth0);
      packed_b.resize(tiles * depth * kTileColumns);
      for (std::int64_t t = 0; t < tiles; ++t) {
        pack_columns(b, column0 + t * kTileColumns, depth0, depth, &packed_b[t * depth * kTileColumns]);
      }
      for (std::int64_t row = 0; row < a.rows; row += kTileRows) {
        pack_rows(a, row, depth0, depth, packed_a.data());
        for (std::int64_t t = 0; t < tiles; ++t) {
          const std::int64_t column = column0 + t * kTileColumns;
          Tile<Real> sums;
          product(depth, packed_a.data(), &packed_b[t * depth * kTileColumns], sums);
          add_tile(sums, a.rows - row, b.columns - column, &c[row * b.columns + column], b.columns);
        }
      }
    }
  }
}

template MatrixView<float> row_major(std::span<const float>, std::int64_t, std::int64_t);
template MatrixView<double> row_major(std::span<const double>, std::int64_t, std::int64_t);
template void add_product(const MatrixView<float>&, const MatrixView<float>&, std::span<float>);
template void add_product(const MatrixView<double>&, const MatrixView<double>&, std::span<double>);

}  // namespace moebius
