// The clock of one board: full while the mean power of the last tens of milliseconds stays below its limit,
// else the one at which the mix of work of that time draws the limit.
#pragma once

#include "hw/units.h"
#include "workloads/cost/clock_power.h"

namespace moebius {

class PowerGovernor {
 public:
  // Time constant of the mean. Of GEMMs of t ms, replayed nine times, those of under 2 ms run at full clock,
  // of 2 to 5 ms 3% slower, of 5 to 20 ms 10%, above at the limit: 12% (H200, AIConfigurator's BF16 tables).
  static constexpr double kWindow = 0.05;  // s
  static constexpr double kLeastClock = 0.4;

  explicit PowerGovernor(const ClockPower& power) : power_(power) {}

  const ClockPower& power() const { return power_; }
  // Share of the full clock at which what starts now runs.
  double clock() const { return clock_; }
  // An op that ran from `start` to `end` at `clock`. In the order of the ends.
  void ended(const OpEnergy& energy, double clock, Time start, Time end);

  // Mean clock while work ran that follows it; 1 where none did.
  double mean_clock() const { return clocked_all_ > 0 ? full_all_ / clocked_all_ : 1; }

 private:
  double clock_at_limit() const;

  ClockPower power_;
  double clock_ = 1;
  Time last_;
  // Sums over the past, fading with the window; divided by it they are means.
  double clocked_ = 0, steady_ = 0;                // joule at full clock; at any
  double clocked_seconds_ = 0, full_seconds_ = 0;  // of work that follows the clock: as it ran; at full clock
  double clocked_all_ = 0, full_all_ = 0;          // the same two without fading
};

}  // namespace moebius
