// Numbers found by 64-bit keys: open addressing in one array, for tables that are made and thrown away often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace moebius {

class KeyTable {
 public:
  explicit KeyTable(std::size_t expected = 0) {
    std::size_t size = 16;
    while (size < 2 * expected) size *= 2;
    slots_.resize(size, {0, kNone});
  }

  // The number that the key had before, else kNone: then it has `number`, which is none of the negative ones.
  static constexpr std::int32_t kNone = -1;
  std::int32_t find_or_add(std::uint64_t key, std::int32_t number) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place_of(key)];
    if (slot.second != kNone) return slot.second;
    slot = {key, number};
    ++used_;
    return kNone;
  }

 private:
  using Slot = std::pair<std::uint64_t, std::int32_t>;

  std::size_t place_of(std::uint64_t key) const {
    std::uint64_t hash = key * 0x9e3779b97f4a7c15u;  // Fibonacci hashing: the high bits depend on all of the key
    hash ^= hash >> 32;
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].second != kNone && slots_[at].first != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size(), {0, kNone});
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.second != kNone) slots_[place_of(slot.first)] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace moebius
