// Who sends how many bytes to whom in an all-to-all of unequal parts: n x n, by sender and then receiver.
// What a member keeps for itself stands on the diagonal and moves nowhere.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace moebius {

struct PairBytes {
  int ranks = 0;
  std::vector<double> bytes;  // ranks * ranks

  double at(int from, int to) const { return bytes[static_cast<std::size_t>(from) * ranks + to]; }
  // What a member sends to others, and gets from them.
  double sent(int from) const;
  double received(int to) const;
  // The largest row and column, own share included: the most that a member holds before and after.
  double largest_before() const;
  double largest_after() const;
};

// Each sends so many to the next, the last to the first.
PairBytes bytes_round_ring(int ranks, double bytes);

using PairBytesPtr = std::shared_ptr<const PairBytes>;

}  // namespace moebius
