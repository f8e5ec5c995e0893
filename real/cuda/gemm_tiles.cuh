// Which tile of which expert's product a team computes.
#pragma once

#include "real/cuda/kernels.h"
#include "real/cuda/tensor_core.cuh"

namespace moebius::cuda {

// The operands of one tile's product and where the tile begins.
struct TileOf {
  Gemm g;
  std::int64_t row = 0, column = 0;
  std::int64_t expert = 0;
};

inline std::int64_t tiles_of(std::int64_t size, std::int64_t tile = kGemmTile) {
  return (size + tile - 1) / tile;
}

// Tiles of kGemmTile rows, since experts' rows are counted in them, and `width` columns.
struct TilesOfExperts {
  GroupedGemm all;
  std::int64_t width, column_tiles, weight_tiles;  // along n; of one expert's weight gradient

  MOEBIUS_DEVICE TileOf operator()(const Team& team, std::int64_t tile) const {
    return all.groups == 1 ? whole(tile) : all.product.a_transposed ? gradient(tile) : rows(team, tile);
  }

 private:
  MOEBIUS_DEVICE TileOf whole(std::int64_t tile) const {
    return {all.product, tile / column_tiles * kGemmTile, tile % column_tiles * width};
  }
  // Of an expert's rows: the last expert whose tiles begin at or before this one. All are compared at once: a
  // search would wait for memory at each step.
  MOEBIUS_DEVICE TileOf rows(const Team& team, std::int64_t tile) const {
    const std::int64_t down = tile / column_tiles;
    const int expert =
        team.sum<int>(all.groups - 1, [&](std::int64_t i) { return all.first_tile[i + 1] <= down ? 1 : 0; });
    const std::int64_t first = all.first_row[expert], count = all.first_row[expert + 1] - first;
    const std::int64_t height = all.product.b.rows / all.groups;
    Gemm g = all.product;
    g.a = g.a.some_rows(first, count);
    g.b = g.b.some_rows(expert * height, height);
    g.c = g.c.some_rows(first, count);
    return {g, (down - all.first_tile[expert]) * kGemmTile, tile % column_tiles * width, expert};
  }
  MOEBIUS_DEVICE TileOf gradient(std::int64_t tile) const {
    const std::int64_t expert = tile / weight_tiles, height = all.product.c.rows / all.groups;
    const std::int64_t first = all.first_row[expert], count = all.first_row[expert + 1] - first;
    Gemm g = all.product;
    g.a = g.a.some_rows(first, count);
    g.b = g.b.some_rows(first, count);
    g.c = g.c.some_rows(expert * height, height);
    return {g, tile % weight_tiles / column_tiles * kGemmTile, tile % weight_tiles % column_tiles * width,
            expert};
  }
};

inline TilesOfExperts tiles_of_experts(const GroupedGemm& all, std::int64_t width = kGemmTile) {
  const Gemm& g = all.product;
  const std::int64_t across = tiles_of(g.b_transposed ? g.b.rows / all.groups : g.b.columns, width);
  return {all, width, across, tiles_of(g.c.rows / all.groups) * across};
}
inline std::int64_t count_tiles(const TilesOfExperts& tiles) {
  const GroupedGemm& all = tiles.all;
  if (all.groups == 1) return tiles_of(all.product.c.rows) * tiles.column_tiles;
  return all.product.a_transposed ? all.groups * tiles.weight_tiles : all.row_tiles * tiles.column_tiles;
}

}  // namespace moebius::cuda
