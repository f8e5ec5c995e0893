// What attention on tensor cores shares between its passes: tiles of BF16 rows in shared memory, and products
// of a warp's 16 rows with them. Tiles are words of neighbours along what a product sums over, in rows padded
// by 4 words, so that the lanes of a fragment meet all banks.
#pragma once

#include "real/cuda/kernels.h"
#include "real/cuda/tensor_core.cuh"

namespace moebius::cuda {

// Largest heads, in fragments of 16 columns.
inline constexpr int kHeadFragments = 12, kValueFragments = 8;
inline constexpr int kRowsOfTeam = kTeamWarps * kFragmentRows;  // each warp has 16 of them
inline constexpr int kPad = 4;

// Words of `width` neighbours.
MOEBIUS_BOTH constexpr int stride_of(std::int64_t width) {
  return static_cast<int>(width / 2) + kPad;
}

struct alignas(16) EightBf16 {
  std::uint32_t word[4];
};

// Columns [first, first + width) of BF16 rows.
struct Stripe {
  Operand x;
  std::int64_t first, width;

  MOEBIUS_DEVICE const std::uint16_t* at(std::int64_t row, std::int64_t column) const {
    return static_cast<const std::uint16_t*>(x.data) + (x.first_row + row) * x.columns + first + column;
  }
  // Eight columns of a row; negative rows hold zeros.
  MOEBIUS_DEVICE EightBf16 eight(std::int64_t row, std::int64_t column) const {
    return row < 0 ? EightBf16{} : *reinterpret_cast<const EightBf16*>(at(row, column));
  }
};

// tile[i][word of columns] = rows row_of(0), row_of(1), ... of the stripe.
template <class RowOf>
MOEBIUS_DEVICE void load_rows(const Team& team, const Stripe& stripe, int count, const RowOf& row_of,
                              std::uint32_t* tile) {
  const std::int64_t eights = stripe.width / 8;
  team.each(count * eights, [&](std::int64_t i) {
    const std::int64_t row = i / eights, part = i % eights;
    const EightBf16 x = stripe.eight(row_of(row), part * 8);
    for (int w = 0; w < 4; ++w) tile[row * stride_of(stripe.width) + part * 4 + w] = x.word[w];
  });
}

// tile[column][word of rows] of the same.
template <class RowOf>
MOEBIUS_DEVICE void load_columns(const Team& team, const Stripe& stripe, int count, const RowOf& row_of,
                                 std::uint32_t* tile) {
  const std::int64_t pairs = count / 2;
  team.each(pairs * stripe.width / 8, [&](std::int64_t i) {
    const std::int64_t pair = i % pairs, column = i / pairs * 8;
    const EightBf16 low = stripe.eight(row_of(2 * pair), column),
                    high = stripe.eight(row_of(2 * pair + 1), column);
    for (int c = 0; c < 8; ++c) {
      const int shift = c % 2 * 16;
      tile[(column + c) * stride_of(count) + pair] =
          (low.word[c / 2] >> shift & 0xffffu) | (high.word[c / 2] >> shift & 0xffffu) << 16;
    }
  });
}

struct LeftWords {
  std::uint32_t w[4];
};
struct RightWords {
  std::uint32_t w[2];
};

// A tile whose rows a product takes as columns of its second operand.
struct RightTile {
  const std::uint32_t* words;
  int stride;
  int across, deep;  // fragments of 8 rows; of 8 words
};

// c[j] += a[i] tile[j][i]: left(thread, lane, i) gives the words of the first operand, c(thread, j) the sums.
template <int kMostAcross, int kMostDeep, class Left, class Sums>
MOEBIUS_DEVICE void multiply_tile(const Warp& warp, const RightTile& tile, const Left& left, const Sums& c) {
  PerThread<LeftWords> a;
  PerThread<RightWords> b;
  MOEBIUS_UNROLL
  for (int i = 0; i < kMostDeep; ++i) {
    if (i >= tile.deep) continue;
    warp.lanes([&](int thread, int lane) { a[thread] = left(thread, lane, i); });
    MOEBIUS_UNROLL
    for (int j = 0; j < kMostAcross; ++j) {
      if (j >= tile.across) continue;
      warp.lanes([&](int thread, int lane) {
        const std::uint32_t* row =
            tile.words + (j * kFragmentColumns + b_column(lane)) * tile.stride + i * kFragmentWords;
        for (int r = 0; r < 2; ++r) b[thread].w[r] = row[b_word(lane, r)];
      });
      warp.template multiply<Multiplicand::kBf16>([&](int thread) {
        return Fragments{c(thread, j), a[thread].w, b[thread].w};
      });
    }
  }
}

// Words (lane, i) of 16 rows that stand in a tile.
MOEBIUS_DEVICE LeftWords left_of_tile(const std::uint32_t* tile, int stride, int first_row, int lane, int i) {
  LeftWords a;
  for (int r = 0; r < 4; ++r)
    a.w[r] = tile[(first_row + a_row(lane, r)) * stride + i * kFragmentWords + a_word(lane, r)];
  return a;
}

// Rows [first, first + count) of a stripe.
struct SomeRows {
  Stripe stripe;
  std::int64_t first, count;
};

// Words (lane, i) of 16 of these rows, from `row` on, as they stand in memory; zeros outside of them.
MOEBIUS_DEVICE LeftWords left_of_rows(const SomeRows& x, std::int64_t row, int lane, int i) {
  LeftWords a;
  for (int r = 0; r < 4; ++r) {
    const std::int64_t at = row + a_row(lane, r), column = i * 16 + a_word(lane, r) * 2;
    const bool there = at < x.count && column < x.stripe.width;
    a.w[r] = there ? *reinterpret_cast<const std::uint32_t*>(x.stripe.at(x.first + at, column)) : 0;
  }
  return a;
}

// Sums of 16 x 8 become words of 16 x 16: a lane holds the same elements of both.
MOEBIUS_DEVICE LeftWords left_of_sums(const float* first, const float* second) {
  return {{bf16_word(first[0], first[1]), bf16_word(first[2], first[3]), bf16_word(second[0], second[1]),
           bf16_word(second[2], second[3])}};
}

MOEBIUS_DEVICE Stripe head_stripe(const Operand& x, std::int64_t head, std::int64_t width) {
  return {x, head * width, width};
}

// A tile of queries, or of keys, and one head.
struct FlashPlace {
  std::int64_t sequence, first, head;
};

}  // namespace moebius::cuda
