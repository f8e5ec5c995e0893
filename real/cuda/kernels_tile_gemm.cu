// Matrix products on tensor cores, and those of all experts in one launch: BF16 or e4m3 with block scales,
// FP32 sums. A team computes a tile of 128 x 128 results; slabs of both operands pass through shared memory,
// the next one on its way in registers meanwhile. Sums of 8-bit products are scaled and added up in FP32
// wherever a scale changes, as DeepSeek-V3 does (arXiv 2412.19437, section 3.3.2).
#include "hw/error.h"
#include "real/cuda/gemm_side.cuh"
#include "real/cuda/gemm_tiles.cuh"
#include "real/cuda/kernels.h"

namespace moebius::cuda {
namespace {

struct Slice {
  std::uint32_t a[4], b[kAcross][2];
};

template <Multiplicand type>
struct Registers {
  static constexpr int kAtOnce = kDown;  // rows of fragments that go through a slab together
  float sums[kDown][kAcross][4] = {};
  std::uint32_t a_next[kWordsOfThread], b_next[kWordsOfThread];
  MOEBIUS_DEVICE float* open(int i, int j) { return sums[i][j]; }  // what products are added to
};
template <>
struct Registers<Multiplicand::kE4m3> {
  static constexpr int kAtOnce = kDown / 2;  // for want of registers
  float sums[kDown][kAcross][4] = {};
  float part[kAtOnce][kAcross][4] = {};  // not scaled yet
  std::uint32_t a_next[kWordsOfThread], b_next[kWordsOfThread];
  MOEBIUS_DEVICE float* open(int i, int j) { return part[i % kAtOnce][j]; }
};

// Of one slab.
struct Scales {
  ScaleLine rows, columns;
};

template <Multiplicand type>
struct TileProduct {
  static constexpr bool kScaled = type == Multiplicand::kE4m3;
  static constexpr std::int64_t kSlab = kSlabWords * per_word(type);

  Side<type> a, b;
  Operand c, bias;
  bool accumulate;
  std::int64_t row, column;  // of the tile

  MOEBIUS_DEVICE TileProduct(const TileOf& tile)
      : a{tile.g.a, !tile.g.a_transposed},
        b{tile.g.b, tile.g.b_transposed},
        c(tile.g.c),
        bias(tile.g.bias),
        accumulate(tile.g.accumulate),
        row(tile.row),
        column(tile.column) {}

  // A slab ends where the scales of either operand change.
  MOEBIUS_DEVICE std::int64_t slab_end(std::int64_t k, std::int64_t depth) const {
    std::int64_t end = k + kSlab < depth ? k + kSlab : depth;
    if constexpr (kScaled) {
      if (a.scale_end(k) < end) end = a.scale_end(k);
      if (b.scale_end(k) < end) end = b.scale_end(k);
    }
    return end;
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
    std::int64_t k = 0, end = slab_end(0, depth);
    fetch(team, registers, k, end);
    while (k < depth) {
      team.sync();
      each_thread(team, [&](int thread) {
        a.put(thread, registers[thread].a_next, a_tile);
        b.put(thread, registers[thread].b_next, b_tile);
      });
      team.sync();
      Scales scales;
      if constexpr (kScaled) scales = {a.scales_at(k), b.scales_at(k)};
      k = end;
      end = slab_end(k, depth);
      if (k < depth) fetch(team, registers, k, end);
      each_warp(team, [&](const Warp& warp) {
        MOEBIUS_UNROLL
        for (int first = 0; first < kDown; first += Registers<type>::kAtOnce) {
          multiply(warp, {a_tile, b_tile, first}, registers);
          if constexpr (kScaled) promote(warp, scales, first, registers);
        }
      });
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

  struct Slab {
    const std::uint32_t *a_tile, *b_tile;
    int first;  // row of fragments
  };
  MOEBIUS_DEVICE void multiply(const Warp& warp, const Slab& slab,
                               PerThread<Registers<type>>& registers) const {
    PerThread<Slice> slice;
    for (int word = 0; word < kSlabWords; word += kFragmentWords) {
      warp.lanes([&](int thread, int lane) {
        MOEBIUS_UNROLL
        for (int j = 0; j < kAcross; ++j)
          for (int r = 0; r < 2; ++r)
            slice[thread].b[j][r] =
                slab.b_tile[(warp_column(warp) + j * kFragmentColumns + b_column(lane)) * kStride + word +
                            b_word(lane, r)];
      });
      MOEBIUS_UNROLL
      for (int i = slab.first; i < slab.first + Registers<type>::kAtOnce; ++i) {
        if (!has_row(warp, i)) continue;
        warp.lanes([&](int thread, int lane) {
          for (int r = 0; r < 4; ++r)
            slice[thread].a[r] = slab.a_tile[(warp_row(warp) + i * kFragmentRows + a_row(lane, r)) * kStride +
                                             word + a_word(lane, r)];
        });
        MOEBIUS_UNROLL
        for (int j = 0; j < kAcross; ++j) {
          if (!has_column(warp, j)) continue;
          warp.template multiply<type>([&](int thread) {
            return Fragments{registers[thread].open(i, j), slice[thread].a, slice[thread].b[j]};
          });
        }
      }
    }
  }

  // sums += part * scales, which are the same for all k of the slab.
  MOEBIUS_DEVICE void promote(const Warp& warp, const Scales& scales, int first,
                              PerThread<Registers<type>>& registers) const {
    constexpr int kAtOnce = Registers<type>::kAtOnce;
    warp.lanes([&](int thread, int lane) {
      float row_scale[kAtOnce][2], column_scale[kAcross][2];
      MOEBIUS_UNROLL
      for (int i = 0; i < 2 * kAtOnce; ++i) {
        const std::int64_t r =
            row + warp_row(warp) + (first + i / 2) * kFragmentRows + c_row(lane, i % 2 * 2);
        row_scale[i / 2][i % 2] = r < a.rows() ? scales.rows(r) : 0;
      }
      MOEBIUS_UNROLL
      for (int j = 0; j < 2 * kAcross; ++j) {
        const std::int64_t c = column + warp_column(warp) + j / 2 * kFragmentColumns + c_column(lane, j % 2);
        column_scale[j / 2][j % 2] = c < b.rows() ? scales.columns(c) : 0;
      }
      auto& held = registers[thread];
      MOEBIUS_UNROLL
      for (int i = 0; i < kAtOnce * kAcross * 4; ++i) {
        const int down = i / 4 / kAcross, across = i / 4 % kAcross, r = i % 4;
        held.sums[first + down][across][r] +=
            held.part[down][across][r] * (row_scale[down][r / 2] * column_scale[across][r % 2]);
        held.part[down][across][r] = 0;
      }
    });
  }

  MOEBIUS_DEVICE void write(const Warp& warp, PerThread<Registers<type>>& registers) const {
    each_result(warp, [&](int thread, const Place& at) {
      const std::int64_t index = at.row * c.columns + at.column;
      const float sum = registers[thread].sums[at.i][at.j][at.r];
      const float added = bias.data != nullptr ? load(bias, at.column) : 0;
      store(c, index, (accumulate ? load(c, index) : added) + sum);
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
  TilesOfExperts tiles;

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t tile) const {
    const TileOf of = tiles(team, tile);
    const std::int64_t depth = of.g.a_transposed ? of.g.a.rows : of.g.a.columns;
    if (depth > 0) TileProduct<type>(of).run(team, depth);
  }
};

// Scales that are the same along k between the ends of blocks.
bool scales_by_segments(const Operand& x, bool along_k) {
  if (x.storage == Storage::kFp8Blocks) return x.first_row % x.period == 0;
  return x.storage == (along_k ? Storage::kFp8Rows : Storage::kFp8Columns);
}

constexpr std::int64_t kTileScratch = 2 * kTile * kStride;

}  // namespace

bool tensor_cores_take(const Gemm& g) {
  if (is_scaled(g.c.storage)) return false;
  if (g.a.storage == Storage::kBf16) return g.b.storage == Storage::kBf16;
  return scales_by_segments(g.a, !g.a_transposed) && scales_by_segments(g.b, g.b_transposed);
}

void grouped_gemm_by_warps(Stream stream, const GroupedGemm& all) {
  CHECK(tensor_cores_take(all.product) && all.groups > 0, "a product that tensor cores do not take");
  const TilesOfExperts tiles = tiles_of_experts(all);
  if (all.product.a.storage == Storage::kBf16) {
    launch_wide_teams(stream, count_tiles(tiles), kTileScratch, GroupedTiles<Multiplicand::kBf16>{tiles});
  } else {
    launch_wide_teams(stream, count_tiles(tiles), kTileScratch, GroupedTiles<Multiplicand::kE4m3>{tiles});
  }
}

void grouped_gemm(Stream stream, const GroupedGemm& all) {
  warpgroups_take(all) ? grouped_gemm_by_warpgroups(stream, all) : grouped_gemm_by_warps(stream, all);
}

void tile_gemm(Stream stream, const Gemm& product) {
  grouped_gemm(stream, {.product = product});
}

}  // namespace moebius::cuda
