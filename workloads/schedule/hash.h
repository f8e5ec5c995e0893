// Content hash of what a schedule is made of, field by field, so that padding and addresses never count:
// 64-bit multiply-and-fold over 8-byte words. Not for secrets; equal on every machine.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace moebius {

class Hash {
 public:
  Hash& add(std::integral auto value) { return mix(static_cast<std::uint64_t>(value)); }
  Hash& add(double value) { return mix(std::bit_cast<std::uint64_t>(value)); }
  Hash& add(std::string_view text) {
    mix(text.size());
    for (const char c : text) mix(static_cast<unsigned char>(c));
    return *this;
  }
  template <class E>
  requires std::is_enum_v<E> Hash& add(E value) { return mix(static_cast<std::uint64_t>(value)); }
  std::uint64_t value() const { return state_; }

 private:
  Hash& mix(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9fb21c651e98df25u;  // odd, so that no word is lost
    state_ ^= state_ >> 32;
    return *this;
  }

  std::uint64_t state_ = 0xcbf29ce484222325u;  // FNV's offset basis
};

}  // namespace moebius
