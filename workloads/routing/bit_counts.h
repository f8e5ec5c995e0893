// Counts, bit by bit, in how many words a bit is set. Internal to route_counts.h.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace moebius {

// Words are added eight at a time by adders without carry (Harley and Seal): some ten operations a word for
// all its bits together. The sums stand as planes: bit b of plane p is bit p of what b counts.
class BitCounts {
 public:
  static constexpr int kBits = 64;

  void add(std::uint64_t word) {
    waiting_[filled_++] = word;
    if (filled_ == waiting_.size()) fold();
  }

  // What the first `bits` bits counted, and begins anew.
  void take(int bits, std::int32_t* out) {
    if (planes_used_ > 0 && filled_ > 0) fold();  // of a few words alone the bits are counted one by one
    for (int b = 0; b < bits; ++b) {
      out[b] = 0;
      for (int p = 0; p < planes_used_; ++p) out[b] |= static_cast<std::int32_t>(planes_[p] >> b & 1) << p;
    }
    for (std::size_t i = 0; i < filled_; ++i) {
      for (std::uint64_t left = waiting_[i]; left != 0; left &= left - 1) ++out[std::countr_zero(left)];
    }
    planes_.fill(0);
    planes_used_ = 0;
    filled_ = 0;
  }

 private:
  struct Sum {
    std::uint64_t low, high;
  };
  static Sum add_three(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    const std::uint64_t half = a ^ b;
    return {half ^ c, (a & b) | (half & c)};
  }

  void fold() {
    for (; filled_ < waiting_.size(); ++filled_) waiting_[filled_] = 0;
    filled_ = 0;
    const auto& w = waiting_;
    const Sum a = add_three(planes_[0], w[0], w[1]), b = add_three(a.low, w[2], w[3]);
    const Sum c = add_three(b.low, w[4], w[5]), d = add_three(c.low, w[6], w[7]);
    const Sum two = add_three(planes_[1], a.high, b.high), four = add_three(two.low, c.high, d.high);
    const Sum eight = add_three(planes_[2], two.high, four.high);
    planes_[0] = d.low;
    planes_[1] = four.low;
    planes_[2] = eight.low;
    int p = 3;
    for (std::uint64_t carry = eight.high; carry != 0; ++p) {
      const std::uint64_t more = planes_[p] & carry;
      planes_[p] ^= carry;
      carry = more;
    }
    if (p > planes_used_) planes_used_ = p;
  }

  std::array<std::uint64_t, 8> waiting_{};
  std::size_t filled_ = 0;
  std::array<std::uint64_t, 31> planes_{};  // as many as a count has bits
  int planes_used_ = 0;
};

}  // namespace moebius
