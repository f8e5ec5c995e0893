// Number formats of tensors and of arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace moebius {

enum class DType : std::uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8, kInt8, kFp4, kInt32, kInt4 };
inline constexpr int kNumDTypes = 9;

// Bytes an element takes in memory, its share of block scales included: FP8 with one FP32 scale per 128 elements is
// 1 + 4/128. FP4 with one FP8 scale per 16 elements is 0.5 + 1/16. INT4 is a format of stored weights, with one
// 16-bit scale per 128 elements (0.5 + 2/128; AWQ and GPTQ at their usual group size); no chip computes in it.
double element_bytes(DType dtype);

std::string_view to_string(DType dtype);                 // "bf16", "fp8", ...
std::optional<DType> parse_dtype(std::string_view text);  // accepts what to_string prints

}  // namespace moebius
