// e4m3 codes the other way round for warpgroups, which want k of 8-bit operands along their lines: weights of
// experts for dx, rows of experts for dW.
#include "hw/error.h"
#include "real/cuda/gemm_tiles.cuh"
#include "real/cuda/kernels.h"

namespace moebius::cuda {
namespace {

constexpr std::int64_t kSide = 128, kWords = kSide / 4;
static_assert(kSide * kWords <= kScratch && kSide == kScaleBlock);

// kSide x kSide codes, of which rows [begin, end) and so many columns are there; others are zeros.
struct Codes {
  const std::uint8_t* first;
  std::int64_t pitch, begin, end, columns;
};

// Calls write(column, word, codes of rows 4 word to 4 word + 3). Words of four columns from four rows become
// words of the four rows of a column. They pass through shared memory, each line begun at another word, so
// that both sides meet all banks.
template <class Write>
MOEBIUS_DEVICE void turn(const Team& team, const Codes& x, const Write& write) {
  const auto place = [](std::int64_t line, std::int64_t word) {
    return line * kWords + (word + line / 4) % kWords;
  };
  auto* words = reinterpret_cast<std::uint32_t*>(team.scratch());
  team.each(kWords * kWords, [&](std::int64_t i) {
    const std::int64_t word = i % kWords, row = i / kWords * 4;
    std::uint32_t in[4] = {};
    MOEBIUS_UNROLL
    for (int j = 0; j < 4; ++j) {
      if (word * 4 < x.columns && row + j >= x.begin && row + j < x.end)
        in[j] = *reinterpret_cast<const std::uint32_t*>(x.first + (row + j) * x.pitch + word * 4);
    }
    MOEBIUS_UNROLL
    for (int j = 0; j < 4; ++j) {
      std::uint32_t out = 0;
      MOEBIUS_UNROLL
      for (int k = 0; k < 4; ++k) out |= (in[k] >> (8 * j) & 0xffu) << (8 * k);
      words[place(word * 4 + j, row / 4)] = out;
    }
  });
  team.sync();
  team.each(kSide * kWords, [&](std::int64_t i) {
    const std::int64_t word = i % kWords, line = i / kWords;
    if (line < x.columns) write(line, word, words[place(line, word)]);
  });
}

struct TurnExperts {
  Operand x, y;
  std::int64_t height, tiles_down, tiles_across;  // rows of an expert in x

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t tile) const {
    const std::int64_t expert = tile / (tiles_down * tiles_across);
    const std::int64_t row = tile / tiles_across % tiles_down * kSide, column = tile % tiles_across * kSide;
    const auto* from =
        static_cast<const std::uint8_t*>(x.data) + (x.first_row + expert * height + row) * x.columns + column;
    auto* to = static_cast<std::uint8_t*>(y.data) + (expert * x.columns + column) * height + row;
    turn(team, {from, x.columns, 0, height - row, x.columns - column},
         [&](std::int64_t line, std::int64_t word, std::uint32_t codes) {
           if (row + word * 4 < height)
             *reinterpret_cast<std::uint32_t*>(to + line * height + word * 4) = codes;
         });
  }
};

struct TurnExpertScales {
  Operand x, y;
  std::int64_t height, stride;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i % stride, column = i / stride % blocks_of(x.columns),
                       expert = i / stride / blocks_of(x.columns);
    y.scales[i] = row < blocks_of(height)
                      ? x.scales[scale_index(x, expert * height + row * kScaleBlock, column * kScaleBlock)]
                      : 0;
  }
};

struct TurnRows {
  Operand x;
  std::uint8_t* y;
  const std::int32_t* first_row;
  int experts;
  std::int64_t tiles_across;

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t tile) const {
    const std::int64_t slab = tile / tiles_across, column = tile % tiles_across * kSide;
    const int expert = team.sum<int>(
        experts - 1, [&](std::int64_t i) { return first_row[i + 1] / kSide + i + 1 <= slab ? 1 : 0; });
    const std::int64_t row = (slab - expert) * kSide;
    const std::int64_t begin = first_row[expert] - row, end = first_row[expert + 1] - row;
    if (end <= 0 || begin >= end) return;  // no block of this expert
    const auto* from = static_cast<const std::uint8_t*>(x.data) + row * x.columns + column;
    auto* to = y + (slab * x.columns + column) * kSide;
    turn(team, {from, x.columns, begin, end, x.columns - column},
         [&](std::int64_t line, std::int64_t word, std::uint32_t codes) {
           *reinterpret_cast<std::uint32_t*>(to + line * kSide + word * 4) = codes;
         });
  }
};

}  // namespace

void turn_experts(Stream stream, const Operand& x, const Operand& y) {
  const std::int64_t height = y.columns, experts = x.rows / height, stride = block_scale_stride(height);
  CHECK(y.rows == experts * x.columns && y.period == x.columns && y.first_row == 0 && height % 4 == 0 &&
            x.columns % 4 == 0,
        "weights that cannot be turned by words");
  const TurnExperts codes{x, y, height, tiles_of(height, kSide), tiles_of(x.columns, kSide)};
  launch_teams(stream, experts * codes.tiles_down * codes.tiles_across, codes);
  launch_elements(stream, experts * blocks_of(x.columns) * stride, TurnExpertScales{x, y, height, stride});
}

void turn_rows(Stream stream, const GroupedGemm& all, const Operand& x, std::uint8_t* y) {
  CHECK(x.columns % 4 == 0 && x.first_row == 0, "rows that cannot be turned by words");
  const TurnRows codes{x, y, all.first_row, all.groups, tiles_of(x.columns, kSide)};
  launch_teams(stream, (blocks_of(x.rows) + all.groups) * codes.tiles_across, codes);
}

}  // namespace moebius::cuda
