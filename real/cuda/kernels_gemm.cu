// The plain matrix product: tiles in shared memory, FP32 arithmetic, operands of any format and orientation.
// It is the product of formats and shapes that the library does not take, and what the library is compared
// with.
#include <string>

#include "hw/error.h"
#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {
namespace {

constexpr int kTile = 64, kDepth = 16, kPatch = 4;  // of a team; along k; of a thread
constexpr int kPatches = kTile / kPatch;
static_assert(kTile * kTile + 2 * kTile * kDepth <= kScratch);

struct GemmTiles {
  Gemm g;
  std::int64_t m, n, k, column_tiles;

  MOEBIUS_DEVICE float a(std::int64_t row, std::int64_t depth) const {
    if (row >= m || depth >= k) return 0;
    return g.a_transposed ? load(g.a, depth, row) : load(g.a, row, depth);
  }
  MOEBIUS_DEVICE float b(std::int64_t depth, std::int64_t column) const {
    if (column >= n || depth >= k) return 0;
    return g.b_transposed ? load(g.b, column, depth) : load(g.b, depth, column);
  }

  // Neighbours read along the rows in which the operand is stored.
  MOEBIUS_DEVICE void fetch(const Team& team, std::int64_t row, std::int64_t column, std::int64_t depth,
                            float* a_tile, float* b_tile) const {
    team.each(kTile * kDepth, [&](std::int64_t i) {
      const std::int64_t d = g.a_transposed ? i / kTile : i % kDepth,
                         r = g.a_transposed ? i % kTile : i / kDepth;
      a_tile[d * kTile + r] = a(row + r, depth + d);
    });
    team.each(kTile * kDepth, [&](std::int64_t i) {
      const std::int64_t d = g.b_transposed ? i % kDepth : i / kTile,
                         c = g.b_transposed ? i / kDepth : i % kTile;
      b_tile[d * kTile + c] = b(depth + d, column + c);
    });
  }

  // Each patch of the sums belongs to one thread, from the first step to the last.
  MOEBIUS_DEVICE static void multiply(const Team& team, const float* a_tile, const float* b_tile,
                                      float* sums) {
    team.each(kPatches * kPatches, [&](std::int64_t patch) {
      const std::int64_t row = patch / kPatches * kPatch, column = patch % kPatches * kPatch;
      float sum[kPatch][kPatch];
      for (int r = 0; r < kPatch; ++r)
        for (int c = 0; c < kPatch; ++c) sum[r][c] = sums[(row + r) * kTile + column + c];
      for (int d = 0; d < kDepth; ++d)
        for (int r = 0; r < kPatch; ++r)
          for (int c = 0; c < kPatch; ++c)
            sum[r][c] += a_tile[d * kTile + row + r] * b_tile[d * kTile + column + c];
      for (int r = 0; r < kPatch; ++r)
        for (int c = 0; c < kPatch; ++c) sums[(row + r) * kTile + column + c] = sum[r][c];
    });
  }

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t tile) const {
    const std::int64_t row = tile / column_tiles * kTile, column = tile % column_tiles * kTile;
    float* sums = team.scratch();
    float *a_tile = sums + kTile * kTile, *b_tile = a_tile + kTile * kDepth;
    team.each(kTile * kTile, [&](std::int64_t i) { sums[i] = 0; });
    for (std::int64_t depth = 0; depth < k; depth += kDepth) {
      team.sync();
      fetch(team, row, column, depth, a_tile, b_tile);
      team.sync();
      multiply(team, a_tile, b_tile, sums);
    }
    team.sync();
    team.each(kTile * kTile, [&](std::int64_t i) {
      const std::int64_t r = row + i / kTile, c = column + i % kTile;
      if (r >= m || c >= n) return;
      const std::int64_t index = r * n + c;
      const float bias = g.bias.data != nullptr ? load(g.bias, c) : 0;
      store(g.c, index, (g.accumulate ? load(g.c, index) : bias) + sums[i]);
    });
  }
};

constexpr int kSummed = 32, kLines = 32;  // columns of a team; sums of every so manieth row on their way

struct ColumnSums {
  Operand x, sums;
  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t block) const {
    const std::int64_t first = block * kSummed;
    float* parts = team.scratch();
    team.each(kSummed * kLines, [&](std::int64_t i) {
      const std::int64_t column = first + i % kSummed;
      float sum = 0;
      if (column < x.columns)
        for (std::int64_t row = i / kSummed; row < x.rows; row += kLines) sum += load(x, row, column);
      parts[i] = sum;
    });
    team.sync();
    team.each(kSummed, [&](std::int64_t i) {
      if (first + i >= x.columns) return;
      float sum = load(sums, first + i);
      for (int line = 0; line < kLines; ++line) sum += parts[line * kSummed + i];
      store(sums, first + i, sum);
    });
  }
};
static_assert(kSummed * kLines <= kScratch);

}  // namespace

void gemm(Stream stream, const Gemm& g) {
  const std::int64_t b_k = g.b_transposed ? g.b.columns : g.b.rows,
                     b_n = g.b_transposed ? g.b.rows : g.b.columns;
  const std::int64_t a_m = g.a_transposed ? g.a.columns : g.a.rows;
  CHECK(a_m == g.m() && b_n == g.n() && b_k == g.k() && !is_scaled(g.c.storage),
        "a product of " + std::to_string(a_m) + " x " + std::to_string(g.k()) + " and " +
            std::to_string(b_k) + " x " + std::to_string(b_n) + " into " + std::to_string(g.m()) + " x " +
            std::to_string(g.n()));
  const auto tiles = [](std::int64_t size) { return (size + kTile - 1) / kTile; };
  launch_teams(stream, tiles(g.m()) * tiles(g.n()), GemmTiles{g, g.m(), g.n(), g.k(), tiles(g.n())});
}

void add_column_sums(Stream stream, const Operand& x, const Operand& sums) {
  CHECK(sums.elements() == x.columns && !is_scaled(sums.storage),
        std::to_string(sums.elements()) + " sums of " + std::to_string(x.columns) + " columns");
  launch_teams(stream, (x.columns + kSummed - 1) / kSummed, ColumnSums{x, sums});
}

}  // namespace moebius::cuda
