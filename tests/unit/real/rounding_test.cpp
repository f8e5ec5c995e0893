#include "real/rounding.h"

#include <cmath>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

namespace moebius {

TEST_CASE("FP8 e4m3 keeps its own values and rounds others to the nearest, ties to even") {
  // Around 1 the spacing is 1/8, around 16 it is 2, below 2^-6 it is 2^-9.
  CHECK(round_fp8_e4m3(0) == 0);
  CHECK(round_fp8_e4m3(1.125) == 1.125);
  CHECK(round_fp8_e4m3(1.0625) == 1.0);   // tie between 1 and 1.125: 1 is even
  CHECK(round_fp8_e4m3(1.1875) == 1.25);  // tie between 1.125 and 1.25: 1.25 is even
  CHECK(round_fp8_e4m3(-1.2) == -1.25);
  CHECK(round_fp8_e4m3(17) == 16);
  CHECK(round_fp8_e4m3(19) == 20);
  CHECK(round_fp8_e4m3(std::ldexp(1.0, -9)) == std::ldexp(1.0, -9));
  CHECK(round_fp8_e4m3(std::ldexp(1.0, -10)) == 0);                   // tie with zero
  CHECK(round_fp8_e4m3(std::ldexp(1.5, -9)) == std::ldexp(1.0, -8));  // tie between 1 and 2 spacings
}

TEST_CASE("FP8 e4m3 saturates at 448") {
  CHECK(round_fp8_e4m3(448) == 448);
  CHECK(round_fp8_e4m3(465) == 448);
  CHECK(round_fp8_e4m3(1e9) == 448);
  CHECK(round_fp8_e4m3(-std::numeric_limits<double>::infinity()) == -448);
  CHECK(std::isnan(round_fp8_e4m3(std::nan(""))));
}

TEST_CASE("BF16 keeps eight bits of precision") {
  // Spacing 2^-7 around 1.
  CHECK(round_bf16(1 + std::ldexp(1.0, -7)) == 1 + std::ldexp(1.0, -7));
  CHECK(round_bf16(1 + std::ldexp(1.0, -8)) == 1);                            // tie, 1 is even
  CHECK(round_bf16(1 + 3 * std::ldexp(1.0, -8)) == 1 + std::ldexp(1.0, -6));  // tie, the upper one is even
  CHECK(round_bf16(-3.14159265) == -3.140625);
  CHECK(round_bf16(1e30) == Approx(1e30).epsilon(1.0 / 256));
  CHECK(std::isinf(round_bf16(std::numeric_limits<double>::infinity())));
}

TEST_CASE("FP16 and FP4 round to their grids") {
  CHECK(round_fp16(2049) == 2048);
  CHECK(round_fp16(1e6) == 65504);
  CHECK(round_fp16(std::ldexp(1.0, -24)) == std::ldexp(1.0, -24));
  const double kGrid[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (const double value : kGrid) CHECK(round_fp4_e2m1(value) == value);
  CHECK(round_fp4_e2m1(2.5) == 2);  // tie between 2 (even) and 3
  CHECK(round_fp4_e2m1(5.1) == 6);
  CHECK(round_fp4_e2m1(100) == 6);
}

// OCP Microscaling Formats 1.0: 32 elements share a power of two. The smallest that keeps 7 within 448 is 2^-6,
// of which 7 is 448; the smallest for 7.5 is 2^-5, of which it is 240.
TEST_CASE("32 elements of MXFP8 share a scale that is a power of two") {
  const ScaleFormat micro{32, true};
  std::vector<double> row(64, 0.3);
  row[0] = 7.5;
  row[32] = 7;
  round_matrix<double>(row, 1, 64, DType::kFp8, micro);
  CHECK(row[0] == 7.5);
  CHECK(row[32] == 7);
  CHECK(row[1] == 10.0 / 32);   // 9.6 of 2^-5, where the spacing is 1
  CHECK(row[33] == 20.0 / 64);  // 19.2 of 2^-6, where it is 2
}

TEST_CASE("a block of FP8 maps its largest magnitude to 448 and keeps it exactly") {
  std::vector<double> row(256, 0.001);
  row[5] = -7;  // scale of the first block: 7/448 = 1/64
  row[200] = 0.5;
  round_matrix<double>(row, 1, 256, DType::kFp8);
  CHECK(row[5] == -7);
  CHECK(row[200] == Approx(0.5).epsilon(1e-7));
  CHECK(row[0] ==
        Approx(0.001).epsilon(0.0625));  // 0.064 in units of the scale: a normal number, 3 bits of fraction
  // Second block, scale 0.5/448: 0.896 -> 0.875 or 0.9375, within 1/16.
  CHECK(row[201] == Approx(0.001).epsilon(0.0625));
}

TEST_CASE("rounding twice changes nothing more") {
  for (const DType dtype :
       {DType::kBf16, DType::kFp16, DType::kFp8, DType::kInt8, DType::kInt4, DType::kFp4, DType::kTf32}) {
    std::vector<float> once(3 * 130);
    for (std::size_t i = 0; i < once.size(); ++i) once[i] = std::sin(static_cast<float>(i) * 1.7f) * 3;
    round_matrix<float>(once, 3, 130, dtype);
    std::vector<float> twice = once;
    round_matrix<float>(twice, 3, 130, dtype);
    INFO(to_string(dtype));
    for (std::size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == Approx(once[i]).epsilon(1e-6));
  }
}

TEST_CASE("FP32 and ids are stored exactly") {
  std::vector<float> values = {1.2345678f, 16777215.0f};
  round_matrix<float>(values, 1, 2, DType::kFp32);
  round_matrix<float>(values, 1, 2, DType::kInt32);
  CHECK(values == std::vector<float>{1.2345678f, 16777215.0f});
}

TEST_CASE("scales by column serve 128 rows each") {
  // Column 0 holds one large value in rows 0..127; rows 128.. have a scale of their own.
  std::vector<double> matrix(256 * 2, 0.01);
  matrix[0] = 4480;  // scale 10: 0.01 becomes 0.001 of it, below half the smallest subnormal 2^-9/2
  round_matrix_by_columns<double>(matrix, 256, 2, DType::kFp8);
  CHECK(matrix[0] == 4480);
  CHECK(matrix[2 * 1] == Approx(0.01953125 * (0.001 > std::ldexp(1.0, -10))));  // row 1, column 0
  CHECK(matrix[2 * 128] == Approx(0.01));                                       // row 128, column 0
  CHECK(matrix[1] == Approx(0.01));                                             // row 0, column 1
}

TEST_CASE("one scale serves a whole part, however far its values stand apart, and none beyond it") {
  // As above: beside 4480, whose scale is 10, 0.0078125 is below half of the smallest subnormal.
  std::vector<double> two(2 * 1024, 0.0078125);
  two[0] = 4480;
  round_parts<double>(two, 1024, DType::kFp8);
  CHECK(two[0] == 4480);
  CHECK(two[1] == 0);
  CHECK(two[1023] == 0);  // seven blocks away from the large value
  CHECK(two[1024] == Approx(0.0078125).epsilon(1e-6));
  round_parts<double>(std::span<double>(), 1024, DType::kFp8);  // an expert without rows
}

TEST_CASE("8-bit weights have a scale per 128 rows and columns and blocks begin anew with each expert") {
  // Two experts of 130 rows and 130 columns. One large value makes 0.01 vanish in its block: 4480 / 448 = 10,
  // and 0.001 is below half of the smallest subnormal with 448 as largest, 2^-10.
  constexpr std::int64_t n = 130, rows = 130;
  std::vector<double> weights(2 * rows * n, 0.0078125);
  weights[0] = 4480;
  round_weights<double>(weights, n, rows, DType::kFp8);
  CHECK(weights[0] == 4480);
  CHECK(weights[1] == 0);
  CHECK(weights[127 * n + 127] == 0);
  for (const std::int64_t kept : {128 * n, std::int64_t{128}, rows * n, (rows + 1) * n})
    CHECK(weights[kept] == Approx(0.0078125).epsilon(1e-6));
}

}  // namespace moebius
