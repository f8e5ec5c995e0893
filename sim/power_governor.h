// The clock of one board: full while the mean power of the last tens of milliseconds stays below its limit,
// else the one at which the mix of work of that time draws the limit.
#pragma once

#include <vector>

#include "hw/units.h"
#include "workloads/cost/clock_power.h"
#include "workloads/schedule/board_clocks.h"

namespace moebius {

class PowerGovernor {
 public:
  // Time constant of the mean. Of GEMMs of t ms, replayed nine times, those of under 2 ms run at full clock,
  // of 2 to 5 ms 3% slower, of 5 to 20 ms 10%, above at the limit: 12% (H200, AIConfigurator's BF16 tables).
  static constexpr double kWindow = 0.05;  // s

  explicit PowerGovernor(const ClockPower& power) : power_(power) {}

  const ClockPower& power() const { return power_; }
  // Share of the full clock at which what starts now runs.
  double clock() const { return clock_; }
  // An op that ran from `start` to `end` at `clock`. In the order of the ends.
  void ended(const OpEnergy& energy, double clock, Time start, Time end);

  // As BoardClocks has them, of one board.
  void forget(Time now);
  bool repeat(Time now);
  double change() const { return changed_; }
  BoardPast past(Time now) const;
  void begin(const BoardPast& past, Time now);

  // Mean clock while work ran that follows it, of what was repeated the last time alone; 1 where none did.
  double mean_clock() const;

 private:
  // What is left of the past: sums that fade with the window; divided by it they are means.
  struct Past {
    double clocked = 0, steady = 0;                // joule at full clock; at any
    double clocked_seconds = 0, full_seconds = 0;  // of work that follows the clock: as it ran; at full clock

    void add(const Past& other, double share);
    Past times(double share) const;
  };
  struct Ended {
    Past work;
    Time start, end;
    double clock_after;
  };
  static void go_on(Past& past, Time& last, const Ended& ended);
  void remember(const Ended& ended);
  double clock_at_limit(const Past& past) const;

  ClockPower power_;
  double clock_ = 1;
  Past past_;  // as of `last_`, when the last op ended
  Time last_;
  Past all_;       // without fading, but for what ran since forget() or repeat()
  Past repeated_;  // that, without fading

  bool remembers_ = false;  // what ends, for repeat()
  bool again_ = false;      // what ends next is the same once more
  Time grain_, most_;       // ops of so short a time are remembered as one; and until when; zero: each, all
  double changed_ = 0;      // a share of the time of what was repeated
  struct Begin {            // of what is repeated
    Time now, last;
    Past past;
    double clock = 1;
  } begin_;
  std::vector<Ended> ended_;
};

}  // namespace moebius
