#include "sim/network/finish_heap.h"

namespace moebius {

void FinishHeap::put(std::size_t at, const Entry& entry) {
  heap_[at] = entry;
  places_[entry.slot] = static_cast<std::int32_t>(at);
}

void FinishHeap::rise(std::size_t at) {
  const Entry entry = heap_[at];
  for (; at > 0 && before(entry, heap_[(at - 1) / 2]); at = (at - 1) / 2) put(at, heap_[(at - 1) / 2]);
  put(at, entry);
}

void FinishHeap::sink(std::size_t at) {
  const Entry entry = heap_[at];
  for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], entry)) break;
    put(at, heap_[child]);
    at = child;
  }
  put(at, entry);
}

// Few entries find their places one by one; where they are many, the whole heap is made anew.
void FinishHeap::set(const std::vector<Entry>& entries) {
  const bool many = entries.size() * 4 > heap_.size();
  for (const Entry& entry : entries) {
    if (places_.size() <= static_cast<std::size_t>(entry.slot)) places_.resize(entry.slot + 1, -1);
    std::int32_t& place = places_[entry.slot];
    if (place < 0) {
      place = static_cast<std::int32_t>(heap_.size());
      heap_.push_back(entry);
    } else {
      heap_[place] = entry;
    }
    if (many) continue;
    rise(place);
    sink(places_[entry.slot]);
  }
  for (std::size_t i = many ? heap_.size() / 2 : 0; i > 0; --i) sink(i - 1);
}

void FinishHeap::remove(std::int32_t slot) {
  if (places_.size() <= static_cast<std::size_t>(slot) || places_[slot] < 0) return;
  const auto at = static_cast<std::size_t>(places_[slot]);
  places_[slot] = -1;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (at == heap_.size()) return;
  put(at, last);
  rise(at);
  sink(places_[last.slot]);
}

}  // namespace moebius
