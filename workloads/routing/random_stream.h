// The stream of random numbers that follows from one key.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace moebius {

// SplitMix64 (Steele, Lea, Flood 2014): a counter stepped by the golden ratio through a finaliser.
class RandomStream {
 public:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

  explicit RandomStream(std::uint64_t key) : state_(key) {}

  static std::uint64_t finalise(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::uint64_t bits() { return finalise(state_ += kGolden); }
  double unit() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }  // uniform in (0, 1)
  // Box and Muller 1958; of two such numbers one is left out.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(unit()));
    return radius * std::cos(2 * std::numbers::pi * unit());
  }
  // Uniform in [0, bound), bound >= 1; the bias of the multiplication is below bound / 2^32.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((bits() >> 32) * bound) >> 32);
  }
  // The same for large bounds; the bias is below bound / 2^64.
  std::uint64_t below_large(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits()) * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

}  // namespace moebius
