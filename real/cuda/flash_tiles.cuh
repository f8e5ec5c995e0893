// What attention on tensor cores shares between its passes: tiles of BF16 rows in shared memory, and products
// of a warp's rows with them. Heads are widened to those a kernel is made for, with zeros. Rows are padded by
// 4 words, an odd number of 16 bytes, so that 8 rows below each other meet all banks.
#pragma once

#include <algorithm>
#include <type_traits>

#include "real/cuda/kernels.h"
#include "real/cuda/warp_team.cuh"

namespace moebius::cuda {

// Largest heads, in fragments of 16 columns.
inline constexpr int kHeadFragments = 12, kValueFragments = 8;

// Words of a tile's row of so many fragments.
MOEBIUS_BOTH constexpr int stride_of(int fragments) {
  return fragments * kFragmentWords + 4;
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
};
MOEBIUS_DEVICE Stripe head_stripe(const Operand& x, std::int64_t head, std::int64_t width) {
  return {x, head * width, width};
}

inline constexpr std::int64_t kMostRows = 1 << 30;
// Who sees whom, as Attention says, in numbers of 32 bits.
struct Sight {
  int sequences, queries, keys, window, chunk;

  explicit Sight(const Attention& a)
      : sequences(static_cast<int>(a.sequences)),
        queries(static_cast<int>(a.queries)),
        keys(static_cast<int>(a.keys)),
        window(static_cast<int>(a.window)),
        chunk(static_cast<int>(a.chunk)) {}
  MOEBIUS_DEVICE int key_row(int sequence, int key) const {
    return (key / chunk * sequences + sequence) * chunk + key % chunk;
  }
  MOEBIUS_DEVICE int last_seen(int i) const { return keys - queries + i + 1; }
  MOEBIUS_DEVICE int first_seen(int i) const {
    const int last = last_seen(i);
    return window > 0 && last > window ? last - window : 0;
  }
};

// The rows of a tile: `count` are there, or more, of which the first `together` stand one below the other.
struct TileRows {
  int together, count;
};

// Begins to copy rows row_of(0), row_of(1), ... of the stripe into a tile; the others are zeros. Eight
// threads beside each other copy 128 bytes of a row.
template <int kRows, int kFragments, class Team, class RowOf>
MOEBIUS_DEVICE void copy_rows(const Team& team, const Stripe& stripe, const TileRows& rows,
                              const RowOf& row_of, SharedWords tile) {
  constexpr int kStep = Team::kThreads / 8, kParts = kFragments / 4;
  static_assert(kRows % kStep == 0 && kFragments % 4 == 0);
  team.each_thread([&](int thread) {
    const int first = thread / 8, part = thread % 8, parts = static_cast<int>(stripe.width) / 8 - part;
    const SharedWords to = tile + (first * stride_of(kFragments) + part * 4);
    const auto copy = [&](int row, const std::uint16_t* from) {
      MOEBIUS_UNROLL
      for (int p = 0; p < kParts; ++p)
        team.copy(to + (row * stride_of(kFragments) + p * 32), from + p * 64,
                  first + row < rows.count && p * 8 < parts);
    };
    if (rows.together >= (rows.count < kRows ? rows.count : kRows)) {
      const std::uint16_t* from = stripe.at(row_of(0) + first, part * 8);
      const std::int64_t step = kStep * stripe.x.columns;
      MOEBIUS_UNROLL
      for (int i = 0; i < kRows / kStep; ++i, from += step) copy(i * kStep, from);
    } else {
      MOEBIUS_NO_UNROLL
      for (int row = 0; row < kRows; row += kStep)
        copy(row, stripe.at(row_of(first + row < rows.count ? first + row : 0), part * 8));
    }
  });
}

// Rows [first, first + count) of queries, or of keys that stand together.
template <int kRows, int kFragments, class Team>
MOEBIUS_DEVICE void copy_rows(const Team& team, const Stripe& stripe, int first, int count,
                              SharedWords tile) {
  copy_rows<kRows, kFragments>(
      team, stripe, {kRows, count}, [&](int i) { return first + i; }, tile);
}

// Keys [key, last), as many as fit.
template <int kRows, int kFragments, class Team>
MOEBIUS_DEVICE void copy_keys(const Team& team, const Sight& sight, const Stripe& stripe, int sequence,
                              int key, int last, SharedWords tile) {
  const int together = sight.keys <= sight.chunk ? kRows : sight.chunk - key % sight.chunk;
  copy_rows<kRows, kFragments>(
      team, stripe, {together, last - key}, [&](int i) { return sight.key_row(sequence, key + i); }, tile);
}

struct FourWords {
  std::uint32_t w[4];
};

// Words of the first operand of a product: fragment i of 16 rows of a tile, from `row` on.
template <int kStride>
MOEBIUS_DEVICE void load_left(const Warp& warp, SharedWords tile, int row, int i, PerThread<FourWords>& a) {
  load_matrices<MatrixOrder::kRows>(
      warp,
      [&](int, int lane) {
        return tile + (row + lane % 16) * kStride + (i * kFragmentWords + lane / 16 * 4);
      },
      [&](int thread) { return a[thread].w; });
}

// The second operand: rows of a tile as its columns (kRows), or as what the product sums over (kTransposed).
// Words of fragment i of the sum and of 16 columns, the j-th: two for the first 8, two for the others.
template <MatrixOrder order, int kStride>
MOEBIUS_DEVICE void load_right(const Warp& warp, SharedWords tile, int i, int j, PerThread<FourWords>& b) {
  load_matrices<order>(
      warp,
      [&](int, int lane) {
        const int row = lane % 8, odd = lane / 8 % 2, second = lane / 16;
        return order == MatrixOrder::kRows
                   ? tile + ((second * 8 + row) * kStride + odd * 4) + (j * 16 * kStride + i * kFragmentWords)
                   : tile + ((odd * 8 + row) * kStride + second * 4) + (i * 16 * kStride + j * 8);
      },
      [&](int thread) { return b[thread].w; });
}

// c[m][n] += a[m][i] b[i][n] for kM fragments of 16 rows, 2 kAcross of 8 columns, kDeep of the sum:
// left(m, i, words) gives words of the first operand, c(thread, m, n) the sums.
template <MatrixOrder order, int kStride, int kM, int kAcross, int kDeep, class Left, class Sums>
MOEBIUS_DEVICE void multiply_tile(const Warp& warp, SharedWords tile, const Left& left, const Sums& c) {
  PerThread<FourWords> a[kM], b;
  MOEBIUS_UNROLL
  for (int i = 0; i < kDeep; ++i) {
    MOEBIUS_UNROLL
    for (int m = 0; m < kM; ++m) left(m, i, a[m]);
    MOEBIUS_UNROLL
    for (int j = 0; j < kAcross; ++j) {
      load_right<order, kStride>(warp, tile, i, j, b);
      MOEBIUS_UNROLL
      for (int m = 0; m < kM; ++m) {
        MOEBIUS_UNROLL
        for (int half = 0; half < 2; ++half) {
          warp.template multiply<Multiplicand::kBf16>([&](int thread) {
            return Fragments{c(thread, m, 2 * j + half), a[m][thread].w, &b[thread].w[2 * half]};
          });
        }
      }
    }
  }
}

// Sums of 16 x 8 become words of 16 x 16: a lane holds the same elements of both.
MOEBIUS_DEVICE FourWords left_of_sums(const float* first, const float* second) {
  return {{rounded_pair(first[0], first[1]), rounded_pair(first[2], first[3]),
           rounded_pair(second[0], second[1]), rounded_pair(second[2], second[3])}};
}

// Where a row of a result begins, from a column on.
class RowOut {
 public:
  MOEBIUS_DEVICE RowOut(const Operand& x, std::int64_t row, std::int64_t column)
      : bf16_(x.storage == Storage::kBf16),
        data_(static_cast<char*>(x.data) + ((x.first_row + row) * x.columns + column) * (bf16_ ? 2 : 4)) {}
  // Two neighbours, the first at an even column.
  MOEBIUS_DEVICE void store(int column, float low, float high) const {
    if (bf16_) {
      *reinterpret_cast<std::uint32_t*>(data_ + 2 * column) = rounded_pair(low, high);
    } else {
      *reinterpret_cast<TwoFloats*>(data_ + 4 * column) = {low, high};
    }
  }

 private:
  struct alignas(8) TwoFloats {
    float low, high;
  };
  bool bf16_;
  char* data_;
};

inline constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

// What the product of a query and a key is multiplied by.
inline double score_scale(const Attention& a) {
  return a.score_scale / std::sqrt(static_cast<double>(a.head_dim));
}

// A tile of queries, or of keys, of a sequence and a head.
struct FlashPlace {
  int sequence, tile, head;
};

// In which order teams take their tiles: those that take longest, which have the lowest numbers, first, of as
// many heads as L2 holds at once what their teams read.
struct FlashOrder {
  int sequences, tiles, heads, at_once;

  FlashOrder(const Attention& a, std::int64_t tiles_of_sequence, std::int64_t number_of_heads,
             std::int64_t bytes_of_head)
      : sequences(static_cast<int>(a.sequences)),
        tiles(static_cast<int>(tiles_of_sequence)),
        heads(static_cast<int>(number_of_heads)) {
    constexpr std::int64_t kL2 = 24 << 20;
    const std::int64_t most = kL2 / std::max<std::int64_t>(bytes_of_head, 1);
    at_once = static_cast<int>(std::clamp<std::int64_t>(most, 1, heads));
  }
  std::int64_t teams() const { return std::int64_t{sequences} * tiles * heads; }
  MOEBIUS_DEVICE FlashPlace place(int item) const {
    const int of_group = at_once * tiles * sequences, first = item / of_group * at_once;
    const int count = heads - first < at_once ? heads - first : at_once;
    const int rest = item % of_group / count;
    return {rest % sequences, rest / sequences, first + item % of_group % count};
  }
};

inline std::int64_t tiles_of(std::int64_t rows, std::int64_t tile) {
  return (rows + tile - 1) / tile;
}

// f(its type) with the narrowest of a pass's three kernels, Kernel<head, value>, that has room for the heads.
template <template <int, int> class Kernel, class F>
auto with_widths(const Attention& a, const F& f) {
  if (a.head_dim <= 64 && a.v_dim <= 64) return f(std::type_identity<Kernel<4, 4>>());
  if (a.head_dim <= 128) return f(std::type_identity<Kernel<8, 8>>());
  return f(std::type_identity<Kernel<kHeadFragments, kValueFragments>>());
}

// Scores of a warp's queries from `first` on and of the keys from `key` on that these do not see become those
// of nothing: score(thread, m, n) are the sums of a fragment.
template <int kDown, int kAcross, class Score>
MOEBIUS_DEVICE void mask_scores(const Warp& warp, const Sight& sight, int first, int key,
                                const Score& score) {
  warp.lanes([&](int thread, int lane) {
    MOEBIUS_UNROLL
    for (int m = 0; m < kDown; ++m) {
      MOEBIUS_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int row = first + m * kFragmentRows + c_row(lane, 2 * half);
        const int from = sight.first_seen(row) - key - c_column(lane, 0);
        const int to = sight.last_seen(row) - key - c_column(lane, 0);
        MOEBIUS_UNROLL
        for (int i = 0; i < 2 * kAcross; ++i) {
          const int column = i / 2 * kFragmentColumns + i % 2;
          if (column < from || column >= to) score(thread, m, i / 2)[2 * half + i % 2] = -INFINITY;
        }
      }
    }
  });
}

}  // namespace moebius::cuda
