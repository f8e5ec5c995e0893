// Storage emulation: what a value becomes when it is stored in a number format. The host computes in float
// (or double) and rounds at each store, so that the precision of a plan shows in its loss.
#pragma once

#include <cstdint>
#include <span>

#include "hw/dtype.h"

namespace moebius {

// The nearest value with `fraction_bits` bits after the leading one and no exponent below `min_exponent`
// (subnormals keep that one's spacing), ties to even; larger magnitudes saturate at `largest`. NaN stays NaN.
double round_to_format(double value, int fraction_bits, int min_exponent, double largest);

double round_bf16(double value);      // 8 bits of precision, the range of float
double round_fp16(double value);      // saturates at 65504
double round_fp8_e4m3(double value);  // saturates at 448; the smallest subnormal is 2^-9
double round_fp4_e2m1(double value);  // 0 0.5 1 1.5 2 3 4 6

// Elements that share a scale: 128 for the 8-bit formats, 16 for FP4, 0 for formats without scales.
int scale_block(DType dtype);

// How an 8-bit format's scales are made, where it is not as scale_block() says.
struct ScaleFormat {
  int block = 0;              // elements that share one; 0: scale_block()
  bool power_of_two = false;  // the smallest that keeps the largest magnitude in range, else in FP32
};

// Rounds a matrix of `rows` x `columns` (row-major) in place to `dtype`. Formats with scales take one per row
// and scale_block() columns: the block's largest magnitude maps to the format's largest value.
template <class Real>
void round_matrix(std::span<Real> values, std::int64_t rows, std::int64_t columns, DType dtype,
                  const ScaleFormat& scales = {});

// The same with one scale per column and scale_block() rows.
template <class Real>
void round_matrix_by_columns(std::span<Real> values, std::int64_t rows, std::int64_t columns, DType dtype,
                             const ScaleFormat& scales = {});

// Weights of 8 bits have one scale per scale_block() rows and as many columns (DeepSeek-V3, arXiv 2412.19437,
// section 3.3.2), so that a product and that of the transposed matrix read the same numbers; blocks begin
// anew every `period` rows, the rows of one expert. All other formats: round_matrix().
template <class Real>
void round_weights(std::span<Real> values, std::int64_t columns, std::int64_t period, DType dtype,
                   const ScaleFormat& scales = {});

// One scale for `part` consecutive elements, found from the largest magnitude that they have now: FP8 with a
// scale per tensor, or per expert.
template <class Real>
void round_parts(std::span<Real> values, std::int64_t part, DType dtype);

// Some elements of a tensor with one scale, whose largest magnitude is `largest`; 0: all are.
template <class Real>
void round_by(std::span<Real> values, double largest, DType dtype);

}  // namespace moebius
