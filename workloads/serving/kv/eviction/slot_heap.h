// Slots by a key, the least one first; of equal keys, the one that came first. A slot's key is changed by
// taking it out and putting it in again.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace moebius::kv {

class SlotHeap {
 public:
  bool empty() const { return heap_.empty(); }
  std::int32_t least() const { return heap_.front().slot; }
  double least_key() const { return heap_.front().key; }
  bool holds(std::int32_t slot) const {
    return slot < static_cast<std::int32_t>(place_.size()) && place_[slot] >= 0;
  }

  void push(std::int32_t slot, double key) {
    if (slot >= static_cast<std::int32_t>(place_.size())) place_.resize(slot + 1, -1);
    heap_.push_back({key, order_++, slot});
    place_[slot] = static_cast<std::int32_t>(heap_.size()) - 1;
    rise(place_[slot]);
  }
  void remove(std::int32_t slot) {
    const std::int32_t at = place_[slot];
    place_[slot] = -1;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (last.slot == slot) return;
    heap_[at] = last;
    place_[last.slot] = at;
    rise(at);
    sink(place_[last.slot]);
  }

 private:
  struct Entry {
    double key = 0;
    std::uint64_t order = 0;
    std::int32_t slot = 0;
    bool before(const Entry& other) const { return std::tie(key, order) < std::tie(other.key, other.order); }
  };

  void swap(std::int32_t a, std::int32_t b) {
    std::swap(heap_[a], heap_[b]);
    place_[heap_[a].slot] = a;
    place_[heap_[b].slot] = b;
  }
  void rise(std::int32_t at) {
    for (; at > 0 && heap_[at].before(heap_[(at - 1) / 2]); at = (at - 1) / 2) swap(at, (at - 1) / 2);
  }
  void sink(std::int32_t at) {
    const auto size = static_cast<std::int32_t>(heap_.size());
    for (std::int32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && heap_[child + 1].before(heap_[child])) ++child;
      if (!heap_[child].before(heap_[at])) return;
      swap(at, child);
      at = child;
    }
  }

  std::vector<Entry> heap_;
  std::vector<std::int32_t> place_;  // by slot; -1: not here
  std::uint64_t order_ = 0;
};

}  // namespace moebius::kv
