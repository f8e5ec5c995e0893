// Rows of 8-bit codes as kernels write them: a warp finds the scale of 128 columns and their codes, with the
// values in registers between.
#pragma once

#include "real/cuda/tensor_core.cuh"

namespace moebius::cuda {

MOEBIUS_DEVICE std::uint8_t code_of(float value, float scale) {
  // In FP64, as the host: a quotient rounded to FP32 first can fall on a tie that it was not.
  return scale == 0 ? 0 : to_e4m3(static_cast<double>(value) / static_cast<double>(scale));
}

// Row `row` of y, which is kFp8Rows, from value(column), called once for each column.
template <class Value>
MOEBIUS_DEVICE void quantise_row(const Team& team, const Operand& y, std::int64_t row, const Value& value) {
  constexpr int kOfLane = kScaleBlock / kLanes;
  struct Held {
    float values[kOfLane], largest;
  };
  auto* codes = static_cast<std::uint8_t*>(y.data) + (y.first_row + row) * y.columns;
  each_warp(team, [&](const Warp& warp) {
    PerThread<Held> held;
    for (std::int64_t block = warp.index(); block < blocks_of(y.columns); block += kTeamWarps) {
      const std::int64_t first = block * kScaleBlock;
      warp.lanes([&](int thread, int lane) {
        Held& h = held[thread];
        h.largest = 0;
        MOEBIUS_UNROLL
        for (int i = 0; i < kOfLane; ++i) {
          const std::int64_t column = first + lane + kLanes * i;
          h.values[i] = column < y.columns ? value(column) : 0;
          h.largest = fmaxf(h.largest, fabsf(h.values[i]));
        }
      });
      warp.join_all([&](int thread) -> float& { return held[thread].largest; },
                    [](float a, float b) { return fmaxf(a, b); });
      warp.lanes([&](int thread, int lane) {
        const Held& h = held[thread];
        const float scale = scale_of(h.largest);
        MOEBIUS_UNROLL
        for (int i = 0; i < kOfLane; ++i) {
          const std::int64_t column = first + lane + kLanes * i;
          if (column < y.columns) codes[column] = code_of(h.values[i], scale);
        }
        if (lane == 0) y.scales[scale_index(y, row, first)] = scale;
      });
    }
  });
}

}  // namespace moebius::cuda
