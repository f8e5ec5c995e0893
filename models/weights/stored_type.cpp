#include "models/weights/stored_type.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "hw/error.h"

namespace moebius {
namespace {

struct Row {
  std::string_view name;
  int bytes;
};
// In the order of the enum.
constexpr Row kRows[kNumStoredTypes] = {{"F64", 8},     {"F32", 4},     {"F16", 2}, {"BF16", 2},
                                        {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4},
                                        {"I16", 2},     {"I8", 1},      {"U8", 1},  {"BOOL", 1}};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// IEEE binary16: 5 exponent bits with bias 15, 10 fraction bits.
float from_fp16(std::uint16_t bits) {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f) return fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
}

// 4 exponent bits with bias 7, 3 fraction bits; no infinities, one NaN a sign, largest 448.
float from_fp8_e4m3(std::uint8_t bits) {
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  const int exponent = bits >> 3 & 0xf, fraction = bits & 7;
  if (exponent == 0xf && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -9);
  return sign * std::ldexp(static_cast<float>(fraction + 8), exponent - 10);
}

float element(StoredType type, const std::byte* at) {
  switch (type) {
    case StoredType::kF64:
      return static_cast<float>(load<double>(at));
    case StoredType::kF32:
      return load<float>(at);
    case StoredType::kF16:
      return from_fp16(load<std::uint16_t>(at));
    case StoredType::kBf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16);
    case StoredType::kFp8E4m3:
      return from_fp8_e4m3(load<std::uint8_t>(at));
    case StoredType::kFp8E5m2:
    case StoredType::kI64:
    case StoredType::kI32:
    case StoredType::kI16:
    case StoredType::kI8:
    case StoredType::kU8:
    case StoredType::kBool:
      break;
  }
  CHECK(false, std::string(to_string(type)));
  return 0;
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);  // stays a NaN when cut
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

std::string_view to_string(StoredType type) {
  return kRows[static_cast<int>(type)].name;
}

int stored_bytes(StoredType type) {
  return kRows[static_cast<int>(type)].bytes;
}

std::optional<StoredType> parse_stored_type(std::string_view text) {
  for (int i = 0; i < kNumStoredTypes; ++i) {
    if (kRows[i].name == text) return static_cast<StoredType>(i);
  }
  return std::nullopt;
}

std::vector<std::string> stored_type_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

bool is_floating(StoredType type) {
  return type <= StoredType::kFp8E4m3;
}

std::vector<float> to_floats(StoredType type, std::span<const std::byte> bytes) {
  const auto width = static_cast<std::size_t>(stored_bytes(type));
  CHECK(is_floating(type) && bytes.size() % width == 0, std::string(to_string(type)));
  std::vector<float> values(bytes.size() / width);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(type, bytes.data() + i * width);
  return values;
}

std::vector<std::byte> from_floats(StoredType type, std::span<const float> values) {
  CHECK(type == StoredType::kF32 || type == StoredType::kBf16, std::string(to_string(type)));
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(stored_bytes(type)));
  if (type == StoredType::kF32) {
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = to_bf16(values[i]);
    std::memcpy(bytes.data() + 2 * i, &bits, sizeof bits);
  }
  return bytes;
}

}  // namespace moebius
