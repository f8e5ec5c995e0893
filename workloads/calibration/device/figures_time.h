// The time of what is measured before the ops: launches, transfers, neighbours, the disk.
#pragma once

#include <chrono>
#include <limits>

namespace moebius {

// From its making on about `seconds`, of which slow machines take more; of a budget that somebody asked for
// at most a share.
struct FiguresTime {
  // Of the budget: within it the disk has to end, and beyond it transfers are measured once.
  static constexpr double kLastShare = 0.25;

  double seconds = 0;
  double budget = std::numeric_limits<double>::infinity();  // of the whole calibration
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double share = 1;

  FiguresTime part(double of) const { return {of * seconds, budget, start, share}; }
  // Of what comes last and can be left out, so that the ops have the rest.
  FiguresTime last_part(double of) const { return {of * seconds, budget, start, kLastShare}; }
  bool spent() const;
  void require_left() const;  // input_error when it is spent
};

}  // namespace moebius
