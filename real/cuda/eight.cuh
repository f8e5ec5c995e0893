// Eight neighbouring numbers at a time: 16 bytes of BF16, 32 of FP32, which is how memory gives its full
// rate.
#pragma once

#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {

inline constexpr std::int64_t kEight = 8;

struct alignas(16) Eight {
  float of[kEight];
};

namespace eight {
struct alignas(16) Words {
  std::uint32_t word[4];
};
}  // namespace eight

// Whether element `first` of it, and with it every eighth one from there on, begins at 16 bytes.
inline bool in_eights(const Operand& x, std::int64_t first = 0) {
  if (is_scaled(x.storage)) return false;
  const auto address =
      reinterpret_cast<std::uintptr_t>(x.data) +
      static_cast<std::uintptr_t>((x.first_row * x.columns + first) * element_size(x.storage));
  return address % sizeof(eight::Words) == 0;
}
// Whether each of its rows does.
inline bool rows_in_eights(const Operand& x) {
  return in_eights(x) && x.columns % kEight == 0;
}

// Elements [index, index + 8), counted row by row, of formats without scales.
MOEBIUS_DEVICE Eight load_eight(const Operand& x, std::int64_t index) {
  index += x.first_row * x.columns;
  if (x.storage == Storage::kFp32)
    return *reinterpret_cast<const Eight*>(static_cast<const float*>(x.data) + index);
  const eight::Words words =
      *reinterpret_cast<const eight::Words*>(static_cast<const std::uint16_t*>(x.data) + index);
  Eight y;
  for (int i = 0; i < 4; ++i) {
    y.of[2 * i] = float_of_bits(words.word[i] << 16);
    y.of[2 * i + 1] = float_of_bits(words.word[i] & 0xffff0000u);
  }
  return y;
}

MOEBIUS_DEVICE void store_eight(const Operand& x, std::int64_t index, const Eight& value) {
  index += x.first_row * x.columns;
  if (x.storage == Storage::kFp32) {
    *reinterpret_cast<Eight*>(static_cast<float*>(x.data) + index) = value;
    return;
  }
  eight::Words words;
  for (int i = 0; i < 4; ++i)
    words.word[i] = static_cast<std::uint32_t>(to_bf16(value.of[2 * i])) |
                    static_cast<std::uint32_t>(to_bf16(value.of[2 * i + 1])) << 16;
  *reinterpret_cast<eight::Words*>(static_cast<std::uint16_t*>(x.data) + index) = words;
}

}  // namespace moebius::cuda
