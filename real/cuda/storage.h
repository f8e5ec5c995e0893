// How numbers lie in a device's memory, and what they mean: the same code on the device and on the host. What
// is stored is what the host executor rounds to (real/rounding.h), so that both hold equal numbers at the
// border of an op.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define MOEBIUS_BOTH __host__ __device__ inline
#define MOEBIUS_DEVICE __device__ inline
#else  // a compiler without CUDA sees plain functions
#define MOEBIUS_BOTH inline
#define MOEBIUS_DEVICE inline
#endif

namespace moebius::cuda {

enum class Storage : std::uint8_t {
  kFp32,  // also ids: whole numbers, exact below 2^24
  kBf16,
  kFp8Rows,  // e4m3 codes, one FP32 scale per row and kScaleBlock columns: scales[row][column / kScaleBlock]
  kFp8Columns,  // one scale per column and kScaleBlock rows: scales[row / kScaleBlock][column]
  kFp8Blocks,   // weights: one scale per kScaleBlock rows and columns, see scale_index()
};
inline constexpr std::int64_t kScaleBlock = 128;
inline constexpr float kLargestFp8 = 448;

MOEBIUS_BOTH constexpr bool is_scaled(Storage storage) {
  return storage == Storage::kFp8Rows || storage == Storage::kFp8Columns || storage == Storage::kFp8Blocks;
}
MOEBIUS_BOTH constexpr std::int64_t blocks_of(std::int64_t count) {
  return (count + kScaleBlock - 1) / kScaleBlock;
}
constexpr std::int64_t element_size(Storage storage) {
  return storage == Storage::kFp32 ? 4 : storage == Storage::kBf16 ? 2 : 1;
}
// Scales of kFp8Blocks stand in rows of this many, so that each begins at 16 bytes, as cuBLASLt wants.
MOEBIUS_BOTH constexpr std::int64_t block_scale_stride(std::int64_t columns) {
  return (blocks_of(columns) + 3) / 4 * 4;
}

// ---- BF16: the upper half of a float, ties to even ----

MOEBIUS_BOTH float float_of_bits(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
MOEBIUS_BOTH std::uint32_t bits_of_float(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
MOEBIUS_BOTH float from_bf16(std::uint16_t bits) {
  return float_of_bits(static_cast<std::uint32_t>(bits) << 16);
}
MOEBIUS_BOTH std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = bits_of_float(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // NaN stays one
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// ---- FP8 e4m3 (OCP, "fn"): bias 7, subnormals 2^-9, largest 448, 0x7f is NaN ----

MOEBIUS_BOTH float from_e4m3(std::uint8_t code) {
  const int exponent = (code >> 3) & 15, fraction = code & 7;
  if ((code & 0x7f) == 0x7f) return float_of_bits(0x7fc00000u);
  const float magnitude = exponent == 0 ? static_cast<float>(fraction) * 0x1p-9f
                                        : float_of_bits(static_cast<std::uint32_t>(exponent + 120) << 23 |
                                                        static_cast<std::uint32_t>(fraction) << 20);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// The nearest code, ties to even; larger magnitudes saturate at 448.
MOEBIUS_BOTH std::uint8_t to_e4m3(double value) {
  const std::uint8_t sign = copysign(1.0, value) < 0 ? 0x80 : 0;
  if (value != value) return 0x7f;
  const double magnitude = fabs(value);
  if (magnitude >= 448) return sign | 0x7e;
  if (magnitude < 0x1p-6)
    return sign | static_cast<std::uint8_t>(rint(magnitude * 512));  // 8: the smallest normal
  int exponent;
  frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [1/2, 1)
  --exponent;
  const int eighths = static_cast<int>(rint(ldexp(magnitude, 3 - exponent)));  // 8..16; 16 carries by itself
  return sign | static_cast<std::uint8_t>(((exponent + 7) << 3) + eighths - 8);
}

// The scale of a block of this largest magnitude; zero when there is none that FP32 can hold.
MOEBIUS_BOTH float scale_of(float largest_magnitude) {
  return static_cast<float>(static_cast<double>(largest_magnitude) / kLargestFp8);
}

// ---- matrices ----

// A row-major matrix, or some rows of one, in a device's memory. It owns nothing.
struct Operand {
  void* data = nullptr;     // of the whole matrix
  float* scales = nullptr;  // of the whole matrix; formats with scales only
  std::int64_t rows = 0, columns = 0;
  std::int64_t first_row = 0;  // of these rows in the whole matrix
  Storage storage = Storage::kFp32;
  std::int64_t period = 0;  // kFp8Blocks: blocks begin anew every so many rows, the rows of one expert

  MOEBIUS_BOTH std::int64_t elements() const { return rows * columns; }
  MOEBIUS_BOTH Operand some_rows(std::int64_t first, std::int64_t count) const {
    Operand part = *this;
    part.first_row += first;
    part.rows = count;
    return part;
  }
};

// Scales of a whole matrix.
constexpr std::int64_t num_scales(const Operand& x) {
  if (x.storage == Storage::kFp8Rows) return x.rows * blocks_of(x.columns);
  if (x.storage == Storage::kFp8Columns) return blocks_of(x.rows) * x.columns;
  if (x.storage != Storage::kFp8Blocks || x.rows == 0) return 0;
  return x.rows / x.period * blocks_of(x.period) * block_scale_stride(x.columns);
}

MOEBIUS_BOTH std::int64_t scale_index(const Operand& x, std::int64_t row, std::int64_t column) {
  row += x.first_row;
  if (x.storage == Storage::kFp8Blocks) {
    const std::int64_t line = row / x.period * blocks_of(x.period) + row % x.period / kScaleBlock;
    return line * block_scale_stride(x.columns) + column / kScaleBlock;
  }
  return x.storage == Storage::kFp8Rows ? row * blocks_of(x.columns) + column / kScaleBlock
                                        : row / kScaleBlock * x.columns + column;
}

// Element `index` of formats without scales, counted row by row.
MOEBIUS_BOTH float load(const Operand& x, std::int64_t index) {
  index += x.first_row * x.columns;
  return x.storage == Storage::kFp32 ? static_cast<const float*>(x.data)[index]
                                     : from_bf16(static_cast<const std::uint16_t*>(x.data)[index]);
}
MOEBIUS_BOTH void store(const Operand& x, std::int64_t index, float value) {
  index += x.first_row * x.columns;
  if (x.storage == Storage::kFp32) {
    static_cast<float*>(x.data)[index] = value;
  } else {
    static_cast<std::uint16_t*>(x.data)[index] = to_bf16(value);
  }
}

// Any format. A block whose scale is zero holds zeros.
MOEBIUS_BOTH float load(const Operand& x, std::int64_t row, std::int64_t column) {
  const std::int64_t index = row * x.columns + column;
  if (!is_scaled(x.storage)) return load(x, index);
  const std::uint8_t code = static_cast<const std::uint8_t*>(x.data)[index + x.first_row * x.columns];
  const float scale = x.scales[scale_index(x, row, column)];
#ifdef __CUDA_ARCH__
  return __fmul_rn(from_e4m3(code), scale);  // rounded by itself, as the host's value, not fused with a sum
#else
  return from_e4m3(code) * scale;
#endif
}

}  // namespace moebius::cuda
