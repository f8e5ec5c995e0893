// e4m3 codes and their scales in the order that matrix libraries read.
#include "hw/error.h"
#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {
namespace {

// Tiles pass through shared memory, a code to a word, so that both sides are touched along their rows.
struct TransposeCodes {
  static constexpr std::int64_t kSide = 64, kStride = kSide + 1;  // a column of words in banks of their own
  static_assert(kSide * kStride <= kScratch);
  const std::uint8_t* x;
  std::uint8_t* y;
  std::int64_t rows, columns, tiles_across;

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t tile) const {
    const std::int64_t row = tile / tiles_across * kSide, column = tile % tiles_across * kSide;
    float* words = team.scratch();
    team.each(kSide * kSide, [&](std::int64_t i) {
      const std::int64_t r = i / kSide, c = i % kSide;
      if (row + r < rows && column + c < columns)
        words[r * kStride + c] = static_cast<float>(x[(row + r) * columns + column + c]);
    });
    team.sync();
    team.each(kSide * kSide, [&](std::int64_t i) {
      const std::int64_t r = i % kSide, c = i / kSide;
      if (row + r < rows && column + c < columns)
        y[(column + c) * rows + row + r] = static_cast<std::uint8_t>(words[r * kStride + c]);
    });
  }
};

struct OrderRowScales {
  Operand x;
  float* y;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t block = i / x.rows, row = i % x.rows;
    y[i] = x.scales[scale_index(x, row, block * kScaleBlock)];
  }
};

// Padding is never read as a scale; zeros keep it from being noise.
struct TransposeBlockScales {
  Operand x;
  float* y;
  std::int64_t stride;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t column = i / stride, row = i % stride;
    y[i] = row < blocks_of(x.rows) ? x.scales[scale_index(x, row * kScaleBlock, column * kScaleBlock)] : 0;
  }
};

}  // namespace

void transpose_codes(Stream stream, const Operand& x, std::uint8_t* y) {
  const auto tiles = [](std::int64_t size) {
    return (size + TransposeCodes::kSide - 1) / TransposeCodes::kSide;
  };
  const auto* codes = static_cast<const std::uint8_t*>(x.data) + x.first_row * x.columns;
  launch_teams(stream, tiles(x.rows) * tiles(x.columns),
               TransposeCodes{codes, y, x.rows, x.columns, tiles(x.columns)});
}

void order_row_scales(Stream stream, const Operand& x, float* y) {
  CHECK(x.storage == Storage::kFp8Rows, "scales of rows");
  launch_elements(stream, blocks_of(x.columns) * x.rows, OrderRowScales{x, y});
}

void transpose_block_scales(Stream stream, const Operand& x, float* y) {
  CHECK(x.storage == Storage::kFp8Blocks, "scales of blocks");
  const std::int64_t stride = block_scale_stride(x.rows);
  launch_elements(stream, blocks_of(x.columns) * stride, TransposeBlockScales{x, y, stride});
}

}  // namespace moebius::cuda
