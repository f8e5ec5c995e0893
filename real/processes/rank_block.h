// Ranks that live together, in one process or on one device.
#pragma once

namespace moebius {

struct RankBlock {
  int first = 0, last = 0;  // [first, last)
  bool holds(int rank) const { return rank >= first && rank < last; }
  int count() const { return last - first; }
};

}  // namespace moebius
