// Protobuf's wire format for writing: a field is its number and wire type as one varint, then a varint, 8
// bytes, or a length and so many bytes. https://protobuf.dev/programming-guides/encoding
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace moebius::viz {

class ProtobufMessage {
 public:
  void varint(int field, std::uint64_t value) {
    raw(static_cast<std::uint64_t>(field) << 3);
    raw(value);
  }
  void fixed64(int field, std::uint64_t value) {
    raw(static_cast<std::uint64_t>(field) << 3 | 1);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));  // little-endian, as timelines are
    bytes_.append(bytes, sizeof(bytes));
  }
  void number(int field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void text(int field, std::string_view value) {
    raw(static_cast<std::uint64_t>(field) << 3 | 2);
    raw(value.size());
    bytes_ += value;
  }
  void message(int field, const ProtobufMessage& inner) { text(field, inner.bytes_); }

  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  void raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace moebius::viz
