#include "real/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

constexpr double kLargestFp8 = 448;
constexpr double kLargestFp4 = 6;
constexpr double kLargestInt8 = 127, kLargestInt4 = 7;

// Elements that share one scale: `count`, `stride` apart, in each of `lines` that lie `line_stride` apart.
template <class Real>
struct Block {
  Real* first;
  std::int64_t count, stride;
  std::int64_t lines = 1, line_stride = 0;

  template <class Visit>
  void each(const Visit& visit) const {
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t i = 0; i < count; ++i) visit(first[line * line_stride + i * stride]);
  }
};

// Block scaling: the largest magnitude maps to `largest` of the format, `round` is applied to the scaled
// values.
template <class Real, class Round>
void round_block(const Block<Real>& block, double largest, bool power_of_two, const Round& round) {
  double magnitude = 0;
  block.each(
      [&](const Real& value) { magnitude = std::max(magnitude, std::abs(static_cast<double>(value))); });
  if (magnitude == 0) return;
  double scale = static_cast<float>(magnitude / largest);  // scales are stored in FP32
  if (power_of_two) scale = std::exp2(std::ceil(std::log2(magnitude / largest)));
  if (scale == 0) return;                                        // too small for a scale of its own: kept
  block.each([&](Real& value) { value = static_cast<Real>(round(value / scale) * scale); });
}

template <class Real>
void round_scaled(const Block<Real>& block, DType dtype, bool power_of_two = false) {
  if (dtype == DType::kFp8) {
    round_block(block, kLargestFp8, power_of_two, [](double v) { return round_fp8_e4m3(v); });
  } else if (dtype == DType::kInt8 || dtype == DType::kInt4) {
    const double largest = dtype == DType::kInt8 ? kLargestInt8 : kLargestInt4;
    round_block(block, largest, false, [=](double v) { return std::clamp(std::nearbyint(v), -largest, largest); });
  } else {
    CHECK(dtype == DType::kFp4, fmt::format("{} has no scales", to_string(dtype)));
    round_block(block, kLargestFp4, false, [](double v) { return round_fp4_e2m1(v); });
  }
}

// Ties to even on the bits of a float: add half of the last kept place, and one less when that is even
// already.
float round_float_bits(float value, int dropped) {
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1u);
  return std::bit_cast<float>((bits + half) & ~((1u << dropped) - 1));
}

std::int64_t block_of(const ScaleFormat& scales, DType dtype) {
  return scales.block > 0 ? scales.block : scale_block(dtype);
}

constexpr int kDroppedByBf16 = 16, kDroppedByTf32 = 13;

template <class Real>
void round_floats(std::span<Real> values, int dropped) {
  for (Real& value : values) value = round_float_bits(static_cast<float>(value), dropped);
}

}  // namespace

double round_to_format(double value, int fraction_bits, int min_exponent, double largest) {
  if (value == 0 || std::isnan(value)) return value;
  const int exponent = std::max(std::isinf(value) ? 0 : std::ilogb(value), min_exponent);
  const double spacing = std::ldexp(1.0, exponent - fraction_bits);
  const double rounded = std::nearbyint(value / spacing) * spacing;
  return std::clamp(rounded, -largest, largest);
}

double round_bf16(double value) {
  return round_float_bits(static_cast<float>(value), kDroppedByBf16);
}
double round_fp16(double value) {
  return round_to_format(value, 10, -14, 65504);
}
double round_fp8_e4m3(double value) {
  return round_to_format(value, 3, -6, kLargestFp8);
}
double round_fp4_e2m1(double value) {
  return round_to_format(value, 1, 0, kLargestFp4);
}

int scale_block(DType dtype) {
  switch (dtype) {
    case DType::kFp8:
    case DType::kInt8:
    case DType::kInt4:
      return 128;
    case DType::kFp4:
      return 16;
    case DType::kFp32:
    case DType::kTf32:
    case DType::kBf16:
    case DType::kFp16:
    case DType::kInt32:
      return 0;
  }
  CHECK(false, fmt::format("dtype {}", static_cast<int>(dtype)));
}

template <class Real>
void round_matrix(std::span<Real> values, std::int64_t rows, std::int64_t columns, DType dtype,
                  const ScaleFormat& scales) {
  CHECK(static_cast<std::int64_t>(values.size()) == rows * columns,
        fmt::format("{} values, {} x {}", values.size(), rows, columns));
  switch (dtype) {
    case DType::kFp32:
    case DType::kInt32:  // ids: exact in float up to 2^24
      return;
    case DType::kTf32:
      return round_floats(values, kDroppedByTf32);
    case DType::kBf16:
      return round_floats(values, kDroppedByBf16);
    case DType::kFp16:
      for (Real& value : values) value = static_cast<Real>(round_fp16(value));
      return;
    case DType::kFp8:
    case DType::kInt8:
    case DType::kInt4:
    case DType::kFp4: {
      const std::int64_t block = block_of(scales, dtype);
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t c = 0; c < columns; c += block) {
          round_scaled(Block<Real>{&values[row * columns + c], std::min(block, columns - c), 1}, dtype,
                       scales.power_of_two);
        }
      }
      return;
    }
  }
}

template <class Real>
void round_matrix_by_columns(std::span<Real> values, std::int64_t rows, std::int64_t columns, DType dtype,
                             const ScaleFormat& scales) {
  const std::int64_t block = block_of(scales, dtype);
  if (block == 0) return round_matrix(values, rows, columns, dtype);
  for (std::int64_t r = 0; r < rows; r += block) {
    for (std::int64_t column = 0; column < columns; ++column) {
      round_scaled(Block<Real>{&values[r * columns + column], std::min(block, rows - r), columns}, dtype,
                   scales.power_of_two);
    }
  }
}

template <class Real>
void round_weights(std::span<Real> values, std::int64_t columns, std::int64_t period, DType dtype,
                   const ScaleFormat& scales) {
  const auto rows = static_cast<std::int64_t>(values.size()) / std::max<std::int64_t>(columns, 1);
  if (dtype != DType::kFp8) return round_matrix(values, rows, columns, dtype);
  CHECK(period > 0 && rows % period == 0, fmt::format("{} rows, {} of an expert", rows, period));
  const std::int64_t block = block_of(scales, dtype);
  for (std::int64_t row = 0; row < rows; row += std::min(block, period - row % period)) {
    for (std::int64_t c = 0; c < columns; c += block) {
      round_scaled(Block<Real>{&values[row * columns + c], std::min(block, columns - c), 1,
                               std::min(block, period - row % period), columns},
                   dtype, scales.power_of_two);
    }
  }
}

template <class Real>
void round_parts(std::span<Real> values, std::int64_t part, DType dtype) {
  const auto size = static_cast<std::int64_t>(values.size());
  if (size == 0) return;
  CHECK(part > 0 && size % part == 0, fmt::format("{} values, {} of a part", size, part));
  for (std::int64_t first = 0; first < size; first += part)
    round_scaled(Block<Real>{&values[first], part, 1}, dtype);
}

template <class Real>
void round_by(std::span<Real> values, double largest, DType dtype) {
  CHECK(dtype == DType::kFp8, fmt::format("{} has no scales of tensors", to_string(dtype)));
  const double scale = static_cast<float>(largest / kLargestFp8);
  if (scale == 0) return;
  for (Real& value : values) value = static_cast<Real>(round_fp8_e4m3(value / scale) * scale);
}

template void round_by(std::span<float>, double, DType);
template void round_by(std::span<double>, double, DType);
template void round_parts(std::span<float>, std::int64_t, DType);
template void round_parts(std::span<double>, std::int64_t, DType);
template void round_weights(std::span<float>, std::int64_t, std::int64_t, DType, const ScaleFormat&);
template void round_weights(std::span<double>, std::int64_t, std::int64_t, DType, const ScaleFormat&);
template void round_matrix(std::span<float>, std::int64_t, std::int64_t, DType, const ScaleFormat&);
template void round_matrix(std::span<double>, std::int64_t, std::int64_t, DType, const ScaleFormat&);
template void round_matrix_by_columns(std::span<float>, std::int64_t, std::int64_t, DType, const ScaleFormat&);
template void round_matrix_by_columns(std::span<double>, std::int64_t, std::int64_t, DType, const ScaleFormat&);

}  // namespace moebius
