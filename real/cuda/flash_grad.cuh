// What both passes of attention's gradient share (kernels_flash_grad.cu).
#pragma once

#include "real/cuda/flash_tiles.cuh"

namespace moebius::cuda {

// What both passes read of each query and head, [sequence * heads + head][query], queries filled up to whole
// tiles: lse in exponents of two, infinite for those that are not there, so that their p is 0; and D.
struct RowNumbers {
  static constexpr int kTile = 64;
  float *lse, *dot;
  int stride;
};

// A warp takes 8 queries at a time, four lanes each.
struct FlashDots {
  static constexpr int kWarps = 8, kBlocks = 4, kScratch = 4;
  static constexpr int kParts = kValueFragments / 2;  // of 8 columns, for each lane

  Attention a;
  AttentionGrad g;
  RowNumbers numbers;
  int tiles;

  MOEBIUS_DEVICE void operator()(const WarpTeam<kWarps>& team, int item) const {
    const int heads = static_cast<int>(a.heads), head = item % heads, tile = item / heads % tiles;
    const int sequence = item / heads / tiles, queries = static_cast<int>(a.queries);
    const Stripe o = head_stripe(g.o, head, a.v_dim), d_o = head_stripe(g.d_o, head, a.v_dim);
    PerThread<float> sum;
    team.each_warp([&](const Warp& warp) {
      const auto query_of = [&](int lane) { return tile * RowNumbers::kTile + warp.index() * 8 + lane / 4; };
      warp.lanes([&](int thread, int lane) {
        const int query = query_of(lane);
        float& mine = sum[thread] = 0;
        MOEBIUS_UNROLL
        for (int i = 0; i < kParts; ++i) {
          const int column = (i * 4 + lane % 4) * 8;
          if (query >= queries || column >= a.v_dim) continue;
          const std::int64_t row = std::int64_t{sequence} * queries + query;
          const EightBf16 x = *reinterpret_cast<const EightBf16*>(o.at(row, column)),
                          y = *reinterpret_cast<const EightBf16*>(d_o.at(row, column));
          MOEBIUS_UNROLL
          for (int w = 0; w < 4; ++w) {
            mine += float_of_bits(x.word[w] << 16) * float_of_bits(y.word[w] << 16);
            mine += float_of_bits(x.word[w] & 0xffff0000u) * float_of_bits(y.word[w] & 0xffff0000u);
          }
        }
      });
      warp.join_rows([&](int thread) -> float& { return sum[thread]; },
                     [](float x, float y) { return x + y; });
      warp.lanes([&](int thread, int lane) {
        if (lane % 4 != 0) return;
        const int query = query_of(lane);
        const std::int64_t at = (std::int64_t{sequence} * heads + head) * numbers.stride + query;
        const std::int64_t row = std::int64_t{sequence} * queries + query;
        numbers.lse[at] = query < queries ? load(g.lse, row * heads + head) * kLog2E : INFINITY;
        numbers.dot[at] = query < queries ? sum[thread] : 0;
      });
    });
  }
};
static_assert(FlashDots::kWarps * 8 == RowNumbers::kTile);

// Of queries [first, first + rows) and keys [key, key + keys): whether one sees one; whether all see all.
MOEBIUS_DEVICE bool sees(const Sight& sight, int first, int rows, int key, int keys) {
  return first < sight.queries && key < sight.last_seen(first + rows - 1) &&
         key + keys > sight.first_seen(first);
}
MOEBIUS_DEVICE bool sees_all(const Sight& sight, int first, int rows, int key, int keys) {
  return key + keys <= sight.last_seen(first) && key >= sight.first_seen(first + rows - 1);
}

}  // namespace moebius::cuda
