// Products of all experts in one launch by Hopper's warpgroups: BF16 or e4m3 with block scales, FP32 sums. A
// team of two warpgroups computes 128 rows by 128 or 256 columns. Slabs of both operands, 128 bytes along k,
// are copied into a ring of stages in shared memory while warpgroups multiply the ones before. Rows and
// columns beyond the result are left as they are there, since only results beyond it are made of them; what
// is beyond k is zeros. Sums of 8-bit products are scaled and added up in FP32 every 128 of k.
#include "hw/error.h"
#include "real/cuda/gemm_tiles.cuh"
#include "real/cuda/kernels.h"
#include "real/cuda/warpgroup.cuh"
#include "real/cuda/warpgroup_feed.cuh"

namespace moebius::cuda {
namespace {

constexpr int kRows = kGroups * kGroupRows;
static_assert(kRows == kGemmTile);
constexpr int kHalf = 128;  // columns that an 8-bit instruction multiplies

struct alignas(16) Quad {
  std::uint32_t word[4];
};

}  // namespace

// Not of this file alone: nvcc would find members unused where a kernel has no body.
template <Multiplicand operand, int width, bool a_by_panels, bool b_by_panels, bool by_slabs = false>
struct WarpgroupForm {
  static constexpr bool of_slabs = by_slabs;  // dW of 8 bits
  static constexpr Multiplicand type = operand;
  static constexpr bool kScaled = type == Multiplicand::kE4m3;
  static constexpr int kWide = width, kSize = 4 / per_word(type), kSlab = kLine / kSize;
  static constexpr bool a_panels = a_by_panels, b_panels = b_by_panels;
  using Product = GroupProduct<type, kScaled ? kHalf : width, a_panels, b_panels>;
  static constexpr int kStageBytes = (kRows + kWide) * kLine;
  // Narrow tiles of BF16 leave room for a second team, which multiplies while this one waits. Wide ones begin
  // a slab's products before those of the slab before are done, whose stage must stand one slab longer.
  static constexpr int kBlocks = !kScaled && kWide == 128 ? 2 : 1;
  static constexpr int kBehind = !kScaled && kWide == 256 ? 1 : 0;
  static constexpr int kStages = kBlocks == 2 ? 3 : kWide == 256 ? 4 : 6;
  static constexpr int kAhead = kStages - 1 - kBehind;
  static constexpr std::int64_t kBytes = kStages * kStageBytes + kToAlign;
};

namespace {

template <class F>
struct Held {
  float sums[F::kWide / 2];
  const float* row_scales;  // 8 bits: of the first of the thread's rows; the other one is 8 further
  Feed<F::kSize, F::a_panels, kRows, F::of_slabs> a;
  Feed<F::kSize, F::b_panels, F::kWide, F::of_slabs> b;
};
template <class F>
struct Part {
  float sums[kHalf / 2];  // of one slab, not scaled yet
  float scale[2];         // of the thread's rows
  float column_scales[F::of_slabs ? kHalf / 4 : 1];
};

template <class F>
struct WarpgroupTiles {
  static constexpr int kBlocks = F::kBlocks;
  using Product = typename F::Product;
  TilesOfExperts tiles;

  const std::uint8_t *a_codes = nullptr, *b_codes = nullptr;  // of_slabs: that turn_rows() left

  MOEBIUS_DEVICE void operator()(const Team& team, std::int64_t index) const {
    const TileOf tile = tiles(team, index);
    const Operand &a = tile.g.a, &b = tile.g.b;
    const std::int64_t depth = F::a_panels || F::of_slabs ? a.rows : a.columns;
    if (depth == 0) return;
    const SharedBytes shared = shared_bytes(team);
    // Slabs of rows begin where blocks of scales do, wherever the expert does.
    const std::int64_t before = F::of_slabs ? a.first_row % F::kSlab : 0, block = a.first_row / F::kSlab;
    const int slabs = static_cast<int>((before + depth + F::kSlab - 1) / F::kSlab);
    PerThread<Held<F>> held;
    each_thread(team, [&](int thread) {
      Held<F>& own = held[thread];
      if constexpr (F::of_slabs) {
        own.a.start_at_slab(thread, a, a_codes, block + tile.expert, tile.row);
        own.b.start_at_slab(thread, b, b_codes, block + tile.expert, tile.column);
      } else {
        own.a.start(thread, a, tile.row);
        own.b.start(thread, b, tile.column);
      }
      if constexpr (F::kScaled) {
        const std::int64_t row =
            tile.row + thread / kGroupThreads * kGroupRows + group_row(thread % kGroupThreads, 0);
        own.row_scales = a.scales + (F::of_slabs ? block * a.columns + row : scale_index(a, row, 0));
        MOEBIUS_UNROLL
        for (int i = 0; i < F::kWide / 2; ++i) own.sums[i] = 0;
      }
    });
    const float* scales = nullptr;
    if constexpr (F::of_slabs) scales = b.scales + block * b.columns + tile.column;
    if constexpr (F::kScaled && !F::of_slabs) scales = b.scales + scale_index(b, tile.column, 0);
    const std::int64_t next_scales = F::of_slabs ? b.columns : 1;
    each_warpgroup(team, [&](const Warpgroup& group) {
      for (int slab = 0; slab < F::kAhead; ++slab) fetch(group, shared, slab < slabs, slab, held);
    });
    int stage = 0;
    for (int slab = 0; slab < slabs; ++slab) {
      copies_wait<F::kAhead - 1>();
      team.sync();
      each_warpgroup(team, [&](const Warpgroup& group) {
        const Slab at{stage * F::kStageBytes, slab, scales + slab * next_scales};
        const auto fetch_ahead = [&] {
          fetch(group, shared, slab + F::kAhead < slabs, (stage + F::kAhead) % F::kStages, held);
        };
        const bool works = has_rows(group, tile);
        if constexpr (F::kScaled) {
          works ? add_scaled(group, shared, tile, at, held, fetch_ahead) : fetch_ahead();
        } else {
          if (works) multiply(group, shared, at, 0, slab > 0, [&](int thread) { return held[thread].sums; });
          fetch_ahead();
          group.template wait<F::kBehind>();
        }
      });
      stage = stage + 1 == F::kStages ? 0 : stage + 1;
    }
    each_warpgroup(team, [&](const Warpgroup& group) {
      if constexpr (!F::kScaled) {
        group.template wait<0>();
        group.template done<F::kWide / 2>([&](int thread) { return held[thread].sums; });
      }
      if (has_rows(group, tile)) write(group, tile, held);
    });
  }

  struct Slab {
    int first;  // byte of the stage
    int index;
    const float* scales;  // 8 bits: of the tile's first columns
  };

  MOEBIUS_DEVICE static bool has_rows(const Warpgroup& group, const TileOf& tile) {
    return tile.row + group.index() * kGroupRows < rows_of(tile);
  }
  MOEBIUS_DEVICE static std::int64_t rows_of(const TileOf& tile) {
    return F::a_panels || F::of_slabs ? tile.g.a.columns : tile.g.a.rows;
  }

  // A group of copies for each slab, be it empty.
  MOEBIUS_DEVICE static void fetch(const Warpgroup& group, const SharedBytes& shared, bool present, int stage,
                                   PerThread<Held<F>>& held) {
    group.threads([&](int thread, int) {
      if (present) {
        held[thread].a.fetch(shared, stage * F::kStageBytes);
        held[thread].b.fetch(shared, stage * F::kStageBytes + kRows * kLine);
      }
      copies_commit();
    });
  }

  // All products of a slab, into what of(thread) says; `column`: the first one of the tile.
  template <class Of>
  MOEBIUS_DEVICE static void multiply(const Warpgroup& group, const SharedBytes& shared, const Slab& slab,
                                      int column, bool add, const Of& of) {
    const std::uint32_t first = shared.address + slab.first;
    const std::uint32_t a = first + group.index() * kGroupRows * kLine;
    const std::uint32_t b = first + (kRows + column) * kLine;
    group.fence();
    MOEBIUS_UNROLL
    for (int step = 0; step < F::kSlab / Product::kDepth; ++step) {
      group.template multiply<Product>(
          shared, of, operand_descriptor(a + step * next_step(F::a_panels), F::a_panels),
          operand_descriptor(b + step * next_step(F::b_panels), F::b_panels), add || step > 0);
    }
    group.commit();
  }

  // sums += the slab's products times the scales of their rows and of their block of weights or columns.
  template <class Meanwhile>
  MOEBIUS_DEVICE static void add_scaled(const Warpgroup& group, const SharedBytes& shared, const TileOf& tile,
                                        const Slab& slab, PerThread<Held<F>>& held,
                                        const Meanwhile& meanwhile) {
    PerThread<Part<F>> part;
    const Operand &a = tile.g.a, &b = tile.g.b;
    const std::int64_t next = F::of_slabs ? a.columns : 1;
    const std::int64_t further = F::of_slabs ? 8 : 8 * blocks_of(a.columns);
    group.threads([&](int thread, int own) {
      const std::int64_t row = tile.row + group.index() * kGroupRows + group_row(own, 0);
      const float* scales = held[thread].row_scales + slab.index * next;
      part[thread].scale[0] = row < rows_of(tile) ? scales[0] : 0;
      part[thread].scale[1] = row + 8 < rows_of(tile) ? scales[further] : 0;
      if constexpr (F::of_slabs) {
        MOEBIUS_UNROLL
        for (int i = 0; i < kHalf / 4; ++i) {
          const int column = group_column(own, i / 2 * 4 + i % 2);
          part[thread].column_scales[i] = tile.column + column < b.columns ? slab.scales[column] : 0;
        }
      }
    });
    const auto sums = [&](int thread) { return part[thread].sums; };
    MOEBIUS_UNROLL
    for (int half = 0; half < F::kWide / kHalf; ++half) {
      if (!F::of_slabs && tile.column + half * kHalf >= b.rows) continue;
      const float of_block = F::of_slabs ? 1 : slab.scales[half * block_scale_stride(b.columns)];
      multiply(group, shared, slab, half * kHalf, false, sums);
      if (half == 0) meanwhile();
      group.template wait<0>();
      group.template done<kHalf / 2>(sums);
      group.threads([&](int thread, int) {
        const Part<F>& found = part[thread];
        const float scale[2] = {found.scale[0] * of_block, found.scale[1] * of_block};
        float* to = held[thread].sums + half * kHalf / 2;
        MOEBIUS_UNROLL
        for (int i = 0; i < kHalf / 2; ++i) {
          if constexpr (F::of_slabs) {
            to[i] += found.sums[i] * (scale[i / 2 % 2] * found.column_scales[i / 4 * 2 + i % 2]);
          } else {
            to[i] += found.sums[i] * scale[i / 2 % 2];
          }
        }
      });
    }
  }

  // A thread holds two neighbours of every eighth column. Four threads that share a row exchange them, so
  // that each has eight neighbours to write at once.
  struct Eight {
    std::uint32_t even[4], odd[4];
  };
  MOEBIUS_DEVICE static void write(const Warpgroup& group, const TileOf& tile, PerThread<Held<F>>& held) {
    const bool rounded = tile.g.c.storage == Storage::kBf16 && !tile.g.accumulate;
    PerThread<Eight> eight;
    MOEBIUS_UNROLL
    for (int index = 0; index < F::kWide / 16; ++index) {
      const int octet = index / 2 * 4, half = index % 2;
      group.threads([&](int thread, int) {
        MOEBIUS_UNROLL
        for (int j = 0; j < 4; ++j) {
          const float* pair = held[thread].sums + (octet + j) * 4 + half * 2;
          eight[thread].even[j] = rounded ? bf16_word(pair[0], pair[1]) : bits_of_float(pair[0]);
          eight[thread].odd[j] = bits_of_float(pair[1]);
        }
      });
      group.transpose_quads([&](int thread) { return eight[thread].even; });
      if (!rounded) group.transpose_quads([&](int thread) { return eight[thread].odd; });
      group.threads([&](int thread, int own) {
        const std::int64_t row = tile.row + group.index() * kGroupRows + group_row(own, half * 2);
        const std::int64_t column = tile.column + (octet + own % 4) * 8;
        if (row < tile.g.c.rows && column < tile.g.c.columns)
          write_eight(tile.g, row, column, eight[thread], rounded);
      });
    }
  }

  MOEBIUS_DEVICE static void write_eight(const Gemm& g, std::int64_t row, std::int64_t column,
                                         const Eight& eight, bool rounded) {
    const std::int64_t index = (g.c.first_row + row) * g.c.columns + column;
    if (rounded) {
      *reinterpret_cast<Quad*>(static_cast<std::uint16_t*>(g.c.data) +
                               index) = {{eight.even[0], eight.even[1], eight.even[2], eight.even[3]}};
    } else if (g.c.storage == Storage::kBf16) {
      auto* to = reinterpret_cast<Quad*>(static_cast<std::uint16_t*>(g.c.data) + index);
      Quad all = *to;
      MOEBIUS_UNROLL
      for (int i = 0; i < 4; ++i) {
        all.word[i] =
            bf16_word(from_bf16(static_cast<std::uint16_t>(all.word[i])) + float_of_bits(eight.even[i]),
                      from_bf16(static_cast<std::uint16_t>(all.word[i] >> 16)) + float_of_bits(eight.odd[i]));
      }
      *to = all;
    } else {
      auto* to = reinterpret_cast<Quad*>(static_cast<float*>(g.c.data) + index);
      MOEBIUS_UNROLL
      for (int i = 0; i < 2; ++i) {
        Quad all = {{eight.even[2 * i], eight.odd[2 * i], eight.even[2 * i + 1], eight.odd[2 * i + 1]}};
        if (g.accumulate) {
          const Quad before = to[i];
          MOEBIUS_UNROLL
          for (int j = 0; j < 4; ++j)
            all.word[j] = bits_of_float(float_of_bits(before.word[j]) + float_of_bits(all.word[j]));
        }
        to[i] = all;
      }
    }
  }
};

template <Multiplicand type, bool a_panels, bool b_panels>
void launch_form(Stream stream, const GroupedGemm& all, int width) {
  const TilesOfExperts wide = tiles_of_experts(all, 256);
  // Wide tiles read less for each product, once there are enough of them for all multiprocessors. Of BF16 two
  // narrow ones on a multiprocessor hide each other's waits better (H200, 8 experts of 2,048 rows: 151 us
  // beside 161).
  const bool enough = wide.column_tiles > 1 && count_tiles(wide) >= count_multiprocessors();
  if (width == 0) width = type == Multiplicand::kE4m3 && enough ? 256 : 128;
  if (width == 256) {
    using F = WarpgroupForm<type, 256, a_panels, b_panels>;
    launch_warpgroups(stream, count_tiles(wide), F::kBytes, WarpgroupTiles<F>{wide});
  } else {
    using F = WarpgroupForm<type, 128, a_panels, b_panels>;
    const TilesOfExperts tiles = tiles_of_experts(all, 128);
    launch_warpgroups(stream, count_tiles(tiles), F::kBytes, WarpgroupTiles<F>{tiles});
  }
}

bool begins_at_pieces(const Operand& x) {
  return reinterpret_cast<std::uintptr_t>(x.data) % kPiece == 0 &&
         x.columns * element_size(x.storage) % kPiece == 0;
}

// Scales of rows, by scales of blocks that begin where each expert does.
bool takes_scales(const GroupedGemm& all) {
  const Operand &a = all.product.a, &b = all.product.b;
  return a.storage == Storage::kFp8Rows && b.storage == Storage::kFp8Blocks && !all.product.a_transposed &&
         all.product.b_transposed && b.first_row % b.period == 0 &&
         (all.groups == 1 ? b.rows <= b.period : b.rows == all.groups * b.period);
}

// Whether the binary has them for this device.
bool has_any() {
  return has_warpgroups<WarpgroupTiles<WarpgroupForm<Multiplicand::kBf16, 128, false, false>>>();
}

}  // namespace

bool warpgroups_take(const GroupedGemm& all) {
  const Gemm& g = all.product;
  const bool formats = g.a.storage == Storage::kBf16
                           ? g.b.storage == Storage::kBf16 && !(g.a_transposed && g.b_transposed)
                           : takes_scales(all);
  return formats && !is_scaled(g.c.storage) && g.bias.data == nullptr && begins_at_pieces(g.a) &&
         begins_at_pieces(g.b) && begins_at_pieces(g.c) && g.c.columns % 8 == 0 && has_any();
}

void grouped_gemm_by_warpgroups(Stream stream, const GroupedGemm& all, int width) {
  CHECK(warpgroups_take(all) && all.groups > 0, "a product that warpgroups do not take");
  const Gemm& g = all.product;
  if (g.a.storage != Storage::kBf16)
    return launch_form<Multiplicand::kE4m3, false, false>(stream, all, width);
  if (g.b_transposed) return launch_form<Multiplicand::kBf16, false, false>(stream, all, width);
  if (g.a_transposed) return launch_form<Multiplicand::kBf16, true, true>(stream, all, width);
  launch_form<Multiplicand::kBf16, false, true>(stream, all, width);
}

std::optional<GroupedGemm> turned_form(const GroupedGemm& all) {
  const Operand& w = all.product.b;
  const std::int64_t height = w.rows / all.groups;
  if (w.storage != Storage::kFp8Blocks || all.product.a_transposed || all.product.b_transposed ||
      w.period != height || w.first_row % height != 0 || !begins_at_pieces(w))
    return {};
  GroupedGemm turned = all;
  turned.product.b = {
      .rows = all.groups * w.columns, .columns = height, .storage = w.storage, .period = w.columns};
  turned.product.b_transposed = true;
  if (!warpgroups_take(turned)) return {};
  return turned;
}

bool warpgroups_take_turned_rows(const GroupedGemm& all) {
  const Gemm& g = all.product;
  const auto takes = [](const Operand& x) {
    return x.storage == Storage::kFp8Columns && x.first_row == 0 && begins_at_pieces(x);
  };
  return all.groups > 1 && takes(g.a) && takes(g.b) && g.a_transposed && !g.b_transposed &&
         !is_scaled(g.c.storage) && g.bias.data == nullptr && begins_at_pieces(g.c) && has_any();
}

void grouped_gemm_of_turned_rows(Stream stream, const GroupedGemm& all, const TurnedRows& turned) {
  CHECK(warpgroups_take_turned_rows(all), "a product that warpgroups do not take");
  using F = WarpgroupForm<Multiplicand::kE4m3, 128, false, false, true>;
  const TilesOfExperts tiles = tiles_of_experts(all, 128);
  launch_warpgroups(stream, count_tiles(tiles), F::kBytes, WarpgroupTiles<F>{tiles, turned.a, turned.b});
}

}  // namespace moebius::cuda
