// Bounds of the search of slices: what turns that are still to come have to take, at least.
#pragma once

#include <vector>

#include "workloads/training/pipeline/slice_search.h"

namespace moebius {

struct LayerRange {
  int first = 0, last = 0;  // layers [first, last)
};

// Sums of the values before each place; the last one: of all.
std::vector<double> prefix_sums(const std::vector<double>& values);

// What turns from one on still have to take in all, at least, and what they have room for: most beginnings
// leave more to them than they could take within the limits. `turns` take their stages in turn, by the rank
// of the same number.
class TurnsLeft {
 public:
  TurnsLeft(const SliceLoads& loads, const StagePlacement& placement, int turns);

  // Of layers in two ranges. Seconds are those of the rank of the turn alone.
  double seconds(int turn, LayerRange a, LayerRange b) const {
    const Turn& of = of_[turn];
    return of.seconds[a.last] - of.seconds[a.first] + of.seconds[b.last] - of.seconds[b.first] + of.fixed;
  }
  double bytes(int turn, LayerRange a, LayerRange b) const {
    const Turn& of = of_[turn];
    return of.bytes[a.last] - of.bytes[a.first] + of.bytes[b.last] - of.bytes[b.first] +
           passing_ * static_cast<double>(of_.size() - 1 - turn);
  }
  double room(int turn) const { return of_[turn].room; }

 private:
  struct Turn {
    std::vector<double> seconds, bytes;  // of the layers up to each
    double fixed = 0, room = 0;          // of embedding and head, seconds; bytes
  };

  double passing_;
  std::vector<Turn> of_;  // from each turn on
};

}  // namespace moebius
