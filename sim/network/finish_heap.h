// When flows finish: a heap by time and then by id in which every slot stands at most once, so that a flow
// whose rate changes takes its place anew instead of leaving an overtaken entry behind.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"

namespace moebius {

class FinishHeap {
 public:
  struct Entry {
    Time time;
    std::uint64_t id = 0;  // orders equal times
    std::int32_t slot = 0;
  };

  bool empty() const { return heap_.empty(); }
  const Entry& top() const { return heap_.front(); }
  // Enters the slots or moves them to their new times.
  void set(const std::vector<Entry>& entries);
  void remove(std::int32_t slot);  // nothing where it does not stand

 private:
  static bool before(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time < b.time : a.id < b.id;
  }
  void put(std::size_t at, const Entry& entry);
  void rise(std::size_t at);
  void sink(std::size_t at);

  std::vector<Entry> heap_;
  std::vector<std::int32_t> places_;  // by slot; -1: not in the heap
};

}  // namespace moebius
