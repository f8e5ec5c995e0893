#include "hw/dtype.h"

#include <cstdlib>

namespace moebius {

double element_bytes(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kTf32:
      return 4;
    case DType::kBf16:
    case DType::kFp16:
      return 2;
    case DType::kFp8:
      return 1 + 4.0 / 128;
    case DType::kInt8:
      return 1;
    case DType::kFp4:
      return 0.5 + 1.0 / 16;
    case DType::kInt32:
      return 4;
    case DType::kInt4:
      return 0.5 + 2.0 / 128;
  }
  std::abort();
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return "fp32";
    case DType::kTf32:
      return "tf32";
    case DType::kBf16:
      return "bf16";
    case DType::kFp16:
      return "fp16";
    case DType::kFp8:
      return "fp8";
    case DType::kInt8:
      return "int8";
    case DType::kFp4:
      return "fp4";
    case DType::kInt32:
      return "int32";
    case DType::kInt4:
      return "int4";
  }
  std::abort();
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (text == to_string(dtype)) return dtype;
  }
  return std::nullopt;
}

}  // namespace moebius
