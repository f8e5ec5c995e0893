// Element types of a safetensors file, and what their bytes are as numbers.
// Source: https://github.com/huggingface/safetensors (README, "Format"). FP8: Micikevicius et al. 2022.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moebius {

enum class StoredType : std::uint8_t {
  kF64,
  kF32,
  kF16,
  kBf16,
  kFp8E4m3,
  kFp8E5m2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool
};
inline constexpr int kNumStoredTypes = 12;

std::string_view to_string(StoredType type);  // as files spell it: "BF16", "F8_E4M3"
std::optional<StoredType> parse_stored_type(std::string_view text);
std::vector<std::string> stored_type_names();
int stored_bytes(StoredType type);  // of one element

// True for the types that to_floats() reads as they stand: F64, F32, F16, BF16, F8_E4M3.
bool is_floating(StoredType type);

// Little-endian elements as floats; F64 is rounded. CHECKs is_floating() and that the bytes are whole
// elements.
std::vector<float> to_floats(StoredType type, std::span<const std::byte> bytes);

// F32 as it is, BF16 to the nearest (ties to even); CHECKs that it is one of the two.
std::vector<std::byte> from_floats(StoredType type, std::span<const float> values);

}  // namespace moebius
