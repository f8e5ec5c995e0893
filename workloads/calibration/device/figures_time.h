// The time of what is measured before the ops: launches, transfers, the disk, neighbours.
#pragma once

#include <chrono>
#include <limits>

namespace moebius {

// From its making on about `seconds`, of which slow disks take more; with the budget of the whole
// calibration, where somebody asked for one, it ends.
struct FiguresTime {
  double seconds = 0;
  double budget = std::numeric_limits<double>::infinity();
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  FiguresTime part(double share) const { return {share * seconds, budget, start}; }
  bool spent() const;
  void require_left() const;  // input_error when it is spent
};

}  // namespace moebius
