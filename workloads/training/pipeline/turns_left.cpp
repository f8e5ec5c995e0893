#include "workloads/training/pipeline/turns_left.h"

#include <algorithm>
#include <limits>

namespace moebius {
namespace {

// Microbatches of every chunk that are alive at one moment: a rank holds so many of all its layers.
int always_alive(const std::vector<std::vector<int>>& moments) {
  int most = 0;
  for (const std::vector<int>& counts : moments)
    if (!counts.empty()) most = std::max(most, *std::min_element(counts.begin(), counts.end()));
  return most;
}

}  // namespace

std::vector<double> prefix_sums(const std::vector<double>& values) {
  std::vector<double> sums{0};
  for (const double value : values) sums.push_back(sums.back() + value);
  return sums;
}

TurnsLeft::TurnsLeft(const SliceLoads& loads, const StagePlacement& placement, int turns)
    : passing_(loads.passing), of_(turns + 1) {
  std::vector<double> least(loads.layers(), 0), bytes(loads.layers(), 0);
  double fixed = 0, room = 0, alive = std::numeric_limits<double>::infinity();
  for (int turn = turns; turn >= 0; --turn) {
    if (turn < turns) {
      for (int i = 0; i < loads.layers(); ++i) {
        const double seconds = loads.seconds[turn][i];
        least[i] = turn + 1 == turns ? seconds : std::min(least[i], seconds);
      }
      for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
        const int stage = placement.stage_of(turn, chunk);
        if (stage == 0) fixed += loads.embedding_seconds[turn];
        if (stage + 1 == placement.stages()) fixed += loads.head_seconds[turn];
      }
      room += loads.room[turn];
      alive = std::min<double>(alive, always_alive(loads.alive[turn]));
      for (int i = 0; i < loads.layers(); ++i) bytes[i] = loads.stays[i] + alive * loads.kept[i];
    }
    of_[turn] = {prefix_sums(least), prefix_sums(bytes), fixed, room};
  }
}

}  // namespace moebius
