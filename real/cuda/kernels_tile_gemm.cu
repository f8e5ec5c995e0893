// Matrix products on tensor cores, and those of all experts in one launch: BF16 or e4m3 with block scales,
// FP32 sums. A team computes a tile of 128 x 128 results; slabs of both operands pass through shared memory,
// the next one on its way in registers meanwhile. Sums of 8-bit products are scaled and added up in FP32
// wherever a scale changes, as DeepSeek-V3 does (arXiv 2412.19437, section 3.3.2).
#include "hw/error.h"
#include "real/cuda/kernels.h"
#include "real/cuda/tensor_core.cuh"

namespace moebius::cuda {
namespace {

constexpr int kTile = kGemmTile;
constexpr int kSlabWords = 16;           // along k: 32 BF16 or 64 codes
constexpr int kStride = kSlabWords + 4;  // words of a row: the lanes of a fragment meet all banks
static_assert(2 * kTile * kStride <= kScratch);
constexpr int kWordsOfThread = kTile * kSlabWords / kTeamThreads;  // of one operand's slab
// Warps stand 2 x 4 over the tile; each has 4 x 4 fragments.
constexpr int kWarpsDown = 2, kAcross = 4, kDown = kTile / kWarpsDown / kFragmentRows;
constexpr int kWarpRows = kDown * kFragmentRows, kWarpColumns = kAcross * kFragmentColumns;
static_assert(kTeamWarps / kWarpsDown * kWarpColumns == kTile && kWordsOfThread == 8);

struct alignas(16) Words4 {
  std::uint32_t word[4];
};
struct alignas(8) Words2 {
  std::uint32_t word[2];
};

template <class Wide>
MOEBIUS_DEVICE bool aligned_to(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(Wide) == 0;
}

template <Multiplicand type>
struct CodeOf {
  using Type = std::uint16_t;
};
template <>
struct CodeOf<Multiplicand::kE4m3> {
  using Type = std::uint8_t;
};

// One operand, as rows (of the result: rows of a, columns of b) and k.
template <Multiplicand type>
struct Side {
  using Code = typename CodeOf<type>::Type;
  static constexpr int kPerWord = per_word(type);

  Operand x;
  bool along_k;  // k runs along the columns of x

  MOEBIUS_DEVICE std::int64_t rows() const { return along_k ? x.rows : x.columns; }
  MOEBIUS_DEVICE const Code* at(std::int64_t row, std::int64_t k) const {
    const Code* codes = static_cast<const Code*>(x.data) + x.first_row * x.columns;
    return codes + (along_k ? row * x.columns + k : k * x.columns + row);
  }
  MOEBIUS_DEVICE float scale(std::int64_t row, std::int64_t k) const {
    return x.scales[along_k ? scale_index(x, row, k) : scale_index(x, k, row)];
  }
  // The first k after this one that has another scale.
  MOEBIUS_DEVICE std::int64_t scale_end(std::int64_t k) const {
    std::int64_t at = k;  // place in its blocks
    if (!along_k) at += x.storage == Storage::kFp8Blocks ? x.first_row % x.period : x.first_row;
    return k + kScaleBlock - at % kScaleBlock;
  }

  // A word at (row, k); zero beyond the rows and from `end` on.
  MOEBIUS_DEVICE std::uint32_t gather(std::int64_t row, std::int64_t k, std::int64_t end) const {
    std::uint32_t word = 0;
    for (int i = 0; i < kPerWord; ++i) {
      if (row < rows() && k + i < end)
        word |= static_cast<std::uint32_t>(*at(row, k + i)) << (32 / kPerWord * i);
    }
    return word;
  }

  // What one thread fetches of the slab at (row, k), and where it puts it.
  MOEBIUS_DEVICE void fetch(int thread, std::int64_t row, std::int64_t k, std::int64_t end,
                            std::uint32_t* words) const {
    along_k ? fetch_rows(thread, row, k, end, words) : fetch_columns(thread, row, k, end, words);
  }
  MOEBIUS_DEVICE void put(int thread, const std::uint32_t* words, std::uint32_t* tile) const {
    for (int i = 0; i < kWordsOfThread; ++i) {
      const int row = along_k ? row_of_quad(thread, i / 4) : thread / kSlabWords * kWordsOfThread + i;
      const int word = along_k ? thread % 4 * 4 + i % 4 : thread % kSlabWords;
      tile[row * kStride + word] = words[i];
    }
  }

 private:
  // Rows of words: four threads to a row, 16 bytes each, twice.
  MOEBIUS_DEVICE static int row_of_quad(int thread, int quad) { return thread / 4 + kTile / 2 * quad; }
  MOEBIUS_DEVICE void fetch_rows(int thread, std::int64_t row, std::int64_t k, std::int64_t end,
                                 std::uint32_t* words) const {
    const std::int64_t first = k + thread % 4 * 4 * kPerWord;
    for (int quad = 0; quad < 2; ++quad) {
      const std::int64_t r = row + row_of_quad(thread, quad);
      if (r < rows() && first + 4 * kPerWord <= end && aligned_to<Words4>(at(r, first))) {
        const Words4 loaded = *reinterpret_cast<const Words4*>(at(r, first));
        for (int i = 0; i < 4; ++i) words[4 * quad + i] = loaded.word[i];
      } else {
        for (int i = 0; i < 4; ++i) words[4 * quad + i] = gather(r, first + i * kPerWord, end);
      }
    }
  }
  // Eight neighbouring rows at one word of k: their codes stand side by side, a k below the other.
  MOEBIUS_DEVICE void fetch_columns(int thread, std::int64_t row, std::int64_t k, std::int64_t end,
                                    std::uint32_t* words) const {
    using Wide = std::conditional_t<type == Multiplicand::kBf16, Words4, Words2>;
    static_assert(sizeof(Wide) == kWordsOfThread * sizeof(Code));
    const std::int64_t r = row + thread / kSlabWords * kWordsOfThread;
    const std::int64_t first = k + thread % kSlabWords * kPerWord;
    bool whole = r + kWordsOfThread <= rows() && first + kPerWord <= end;
    for (int j = 0; whole && j < kPerWord; ++j) whole = aligned_to<Wide>(at(r, first + j));
    for (int i = 0; i < kWordsOfThread; ++i) words[i] = whole ? 0 : gather(r + i, first, end);
    if (!whole) return;
    for (int j = 0; j < kPerWord; ++j) {
      const Wide loaded = *reinterpret_cast<const Wide*>(at(r, first + j));
      for (int i = 0; i < kWordsOfThread; ++i) {
        const std::uint32_t code = loaded.word[i / kPerWord] >> (32 / kPerWord * (i % kPerWord));
        words[i] |= static_cast<std::uint32_t>(static_cast<Code>(code)) << (32 / kPerWord * j);
      }
    }
  }
};

using Sums = float[kDown][kAcross][4];

struct Slice {
  std::uint32_t a[4], b[kAcross][2];
};

template <Multiplicand type>
struct Registers {
  Sums sums = {};
  MOEBIUS_DEVICE Sums& open() { return sums; }  // what products are added to
  std::uint32_t a_next[kWordsOfThread], b_next[kWordsOfThread];
};
template <>
struct Registers<Multiplicand::kE4m3> {
  Sums sums = {}, part = {};  // part: not scaled yet
  MOEBIUS_DEVICE Sums& open() { return part; }
  std::uint32_t a_next[kWordsOfThread], b_next[kWordsOfThread];
};

// The operands of one tile's product and where the tile begins.
struct TileOf {
  Gemm g;
  std::int64_t row = 0, column = 0;
};

template <Multiplicand type>
struct TileProduct {
  static constexpr bool kScaled = type == Multiplicand::kE4m3;
  static constexpr std::int64_t kSlab = kSlabWords * per_word(type);

  Side<type> a, b;
  Operand c;
  bool accumulate;
  std::int64_t row, column;  // of the tile

  MOEBIUS_DEVICE TileProduct(const TileOf& tile)
      : a{tile.g.a, !tile.g.a_transposed},
        b{tile.g.b, tile.g.b_transposed},
        c(tile.g.c),
        accumulate(tile.g.accumulate),
        row(tile.row),
        column(tile.column) {}

  // Where the scales of either operand change after k.
  MOEBIUS_DEVICE std::int64_t segment_end(std::int64_t k, std::int64_t depth) const {
    if constexpr (!kScaled) return depth;
    const std::int64_t end = a.scale_end(k) < b.scale_end(k) ? a.scale_end(k) : b.scale_end(k);
    return end < depth ? end : depth;
  }

  MOEBIUS_DEVICE void fetch(const Team& team, PerThread<Registers<type>>& registers, std::int64_t k,
                            std::int64_t end) const {
    each_thread(team, [&](int thread) {
      a.fetch(thread, row, k, end, registers[thread].a_next);
      b.fetch(thread, column, k, end, registers[thread].b_next);
    });
  }

  MOEBIUS_DEVICE void run(const Team& team, std::int64_t depth) const {
    auto* a_tile = reinterpret_cast<std::uint32_t*>(team.scratch());
    std::uint32_t* b_tile = a_tile + kTile * kStride;
    PerThread<Registers<type>> registers;
    each_thread(team, [&](int thread) { registers[thread] = {}; });
    std::int64_t k = 0, end = segment_end(0, depth);
    fetch(team, registers, k, end);
    while (k < depth) {
      team.sync();
      each_thread(team, [&](int thread) {
        a.put(thread, registers[thread].a_next, a_tile);
        b.put(thread, registers[thread].b_next, b_tile);
      });
      team.sync();
      const std::int64_t here = k;
      k = k + kSlab < end ? k + kSlab : end;
      const bool changes = k == end;
      if (changes && k < depth) end = segment_end(k, depth);
      if (k < depth) fetch(team, registers, k, end);
      each_warp(team, [&](const Warp& warp) { multiply(warp, a_tile, b_tile, registers); });
      if constexpr (kScaled) {
        if (changes) each_warp(team, [&](const Warp& warp) { promote(warp, here, registers); });
      }
    }
    each_warp(team, [&](const Warp& warp) { write(warp, registers); });
  }

  MOEBIUS_DEVICE static int warp_row(const Warp& warp) { return warp.index() % kWarpsDown * kWarpRows; }
  MOEBIUS_DEVICE static int warp_column(const Warp& warp) { return warp.index() / kWarpsDown * kWarpColumns; }
  // Fragments beyond the result are left out: experts of few rows are short tiles.
  MOEBIUS_DEVICE bool has_row(const Warp& warp, int i) const {
    return row + warp_row(warp) + i * kFragmentRows < a.rows();
  }
  MOEBIUS_DEVICE bool has_column(const Warp& warp, int j) const {
    return column + warp_column(warp) + j * kFragmentColumns < b.rows();
  }

  MOEBIUS_DEVICE void multiply(const Warp& warp, const std::uint32_t* a_tile, const std::uint32_t* b_tile,
                               PerThread<Registers<type>>& registers) const {
    PerThread<Slice> slice;
    for (int word = 0; word < kSlabWords; word += kFragmentWords) {
      warp.lanes([&](int thread, int lane) {
        MOEBIUS_UNROLL
        for (int j = 0; j < kAcross; ++j)
          for (int r = 0; r < 2; ++r)
            slice[thread].b[j][r] =
                b_tile[(warp_column(warp) + j * kFragmentColumns + b_column(lane)) * kStride + word +
                       b_word(lane, r)];
      });
      MOEBIUS_UNROLL
      for (int i = 0; i < kDown; ++i) {
        if (!has_row(warp, i)) continue;
        warp.lanes([&](int thread, int lane) {
          for (int r = 0; r < 4; ++r)
            slice[thread].a[r] = a_tile[(warp_row(warp) + i * kFragmentRows + a_row(lane, r)) * kStride +
                                        word + a_word(lane, r)];
        });
        MOEBIUS_UNROLL
        for (int j = 0; j < kAcross; ++j) {
          if (!has_column(warp, j)) continue;
          warp.template multiply<type>([&](int thread) {
            return Fragments{registers[thread].open()[i][j], slice[thread].a, slice[thread].b[j]};
          });
        }
      }
    }
  }

  // sums += part * scales, which are the same for all k since the last time.
  MOEBIUS_DEVICE void promote(const Warp& warp, std::int64_t k, PerThread<Registers<type>>& registers) const {
    warp.lanes([&](int thread, int lane) {
      float row_scale[kDown][2], column_scale[kAcross][2];
      MOEBIUS_UNROLL
      for (int i = 0; i < 2 * kDown; ++i) {
        const std::int64_t r = row + warp_row(warp) + i / 2 * kFragmentRows + c_row(lane, i % 2 * 2);
        row_scale[i / 2][i % 2] = r < a.rows() ? a.scale(r, k) : 0;
      }
      MOEBIUS_UNROLL
      for (int j = 0; j < 2 * kAcross; ++j) {
        const std::int64_t c = column + warp_column(warp) + j / 2 * kFragmentColumns + c_column(lane, j % 2);
        column_scale[j / 2][j % 2] = c < b.rows() ? b.scale(c, k) : 0;
      }
      auto& held = registers[thread];
      MOEBIUS_UNROLL
      for (int i = 0; i < kDown * kAcross * 4; ++i) {
        const int down = i / 4 / kAcross, across = i / 4 % kAcross, r = i % 4;
        held.sums[down][across][r] +=
            held.part[down][across][r] * (row_scale[down][r / 2] * column_scale[across][r % 2]);
        held.part[down][across][r] = 0;
      }
    });
  }

  MOEBIUS_DEVICE void write(const Warp& warp, PerThread<Registers<type>>& registers) const {
    each_result(warp, [&](int thread, const Place& at) {
      const std::int64_t index = at.row * c.columns + at.column;
      const float sum = registers[thread].sums[at.i][at.j][at.r];
      store(c, index, accumulate ? load(c, index) + sum : sum);
    });
  }

  struct Place {
    int i, j, r;  // fragment and register
    std::int64_t row, column;
  };
  template <class F>
  MOEBIUS_DEVICE void each_result(const Warp& warp, const F& f) const {
    warp.lanes([&](int thread, int lane) {
      MOEBIUS_UNROLL
      for (int index = 0; index < kDown * kAcross * 4; ++index) {
        const int i = index / 4 / kAcross, j = index / 4 % kAcross, r = index % 4;
        const Place at{i, j, r, row + warp_row(warp) + i * kFragmentRows + c_row(lane, r),
                       column + warp_column(warp) + j * kFragmentColumns + c_column(lane, r)};
        if (at.row < a.rows() && at.column < b.rows()) f(thread, at);
      }
    });
  }
};

template <Multiplicand type>
struct GroupedTiles {
  GroupedGemm all;
  std::int64_t column_tiles, weight_tiles;  // along n; of one expert's weight gradient

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t tile) const {
    const TileOf of = all.groups == 1 ? whole(tile) : all.product.a_transposed ? gradient(tile) : rows(tile);
    const std::int64_t depth = of.g.a_transposed ? of.g.a.rows : of.g.a.columns;
    if (depth > 0) TileProduct<type>(of).run(team, depth);
  }

  MOEBIUS_DEVICE TileOf whole(std::int64_t tile) const {
    return {all.product, tile / column_tiles * kTile, tile % column_tiles * kTile};
  }
  // Of an expert's rows: the last expert whose tiles begin at or before this one.
  MOEBIUS_DEVICE TileOf rows(std::int64_t tile) const {
    const std::int64_t down = tile / column_tiles;
    int expert = 0, beyond = all.groups;
    while (beyond - expert > 1) {
      const int middle = (expert + beyond) / 2;
      (all.first_tile[middle] <= down ? expert : beyond) = middle;
    }
    const std::int64_t first = all.first_row[expert], count = all.first_row[expert + 1] - first;
    const std::int64_t height = all.product.b.rows / all.groups;
    Gemm g = all.product;
    g.a = g.a.some_rows(first, count);
    g.b = g.b.some_rows(expert * height, height);
    g.c = g.c.some_rows(first, count);
    return {g, (down - all.first_tile[expert]) * kTile, tile % column_tiles * kTile};
  }
  MOEBIUS_DEVICE TileOf gradient(std::int64_t tile) const {
    const std::int64_t expert = tile / weight_tiles, height = all.product.c.rows / all.groups;
    const std::int64_t first = all.first_row[expert], count = all.first_row[expert + 1] - first;
    Gemm g = all.product;
    g.a = g.a.some_rows(first, count);
    g.b = g.b.some_rows(first, count);
    g.c = g.c.some_rows(expert * height, height);
    return {g, tile % weight_tiles / column_tiles * kTile, tile % weight_tiles % column_tiles * kTile};
  }
};

// Scales that are the same along k between the ends of blocks.
bool scales_by_segments(const Operand& x, bool along_k) {
  return x.storage == Storage::kFp8Blocks ||
         x.storage == (along_k ? Storage::kFp8Rows : Storage::kFp8Columns);
}

std::int64_t tiles_of(std::int64_t size) {
  return (size + kTile - 1) / kTile;
}

}  // namespace

bool tensor_cores_take(const Gemm& g) {
  if (is_scaled(g.c.storage)) return false;
  if (g.a.storage == Storage::kBf16) return g.b.storage == Storage::kBf16;
  return scales_by_segments(g.a, !g.a_transposed) && scales_by_segments(g.b, g.b_transposed);
}

void grouped_gemm(Stream stream, const GroupedGemm& all) {
  const Gemm& g = all.product;
  CHECK(tensor_cores_take(g) && all.groups > 0, "a product that tensor cores do not take");
  const std::int64_t across = tiles_of(g.b_transposed ? g.b.rows / all.groups : g.b.columns);
  const std::int64_t weight_tiles = tiles_of(g.c.rows / all.groups) * across;
  const std::int64_t tiles = all.groups == 1  ? tiles_of(g.c.rows) * across
                             : g.a_transposed ? all.groups * weight_tiles
                                              : all.row_tiles * across;
  if (g.a.storage == Storage::kBf16) {
    launch_teams(stream, tiles, GroupedTiles<Multiplicand::kBf16>{all, across, weight_tiles});
  } else {
    launch_teams(stream, tiles, GroupedTiles<Multiplicand::kE4m3>{all, across, weight_tiles});
  }
}

void tile_gemm(Stream stream, const Gemm& product) {
  grouped_gemm(stream, {.product = product});
}

}  // namespace moebius::cuda
