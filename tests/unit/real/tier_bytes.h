// Bytes that tests of tiers move.
#pragma once

#include <cstring>

#include "real/tiers/aligned_memory.h"
#include "workloads/routing/random_stream.h"
#include "workloads/serving/kv/tier.h"

namespace moebius::kv {

class Pages {
 public:
  explicit Pages(std::int64_t bytes) : memory_(bytes), bytes_(bytes) {}

  std::byte* at(std::int64_t offset) const { return memory_.data() + offset; }
  void fill_randomly(std::uint64_t key) {
    RandomStream random(key);
    for (std::int64_t i = 0; i < bytes_; ++i) *at(i) = static_cast<std::byte>(random.bits());
  }
  bool equals(const Pages& other) const {
    return std::memcmp(at(0), other.at(0), static_cast<std::size_t>(bytes_)) == 0;
  }

 private:
  AlignedMemory memory_;
  std::int64_t bytes_;
};

// Waits for the tier to be idle: were so many transfers done, and all of them good?
inline bool all_good(Tier& tier, std::int64_t expected) {
  std::int64_t good = 0;
  while (tier.next() != kForever) {
    for (const TransferDone& done : tier.wait(kForever))
      good += done.outcome == Outcome::kGood ? 1 : -expected;
  }
  return good == expected;
}

}  // namespace moebius::kv
