#include "sim/power_governor.h"

#include <algorithm>
#include <cmath>

namespace moebius {
namespace {

constexpr double kSameClock = 0.0005;  // a share of the full one
// Of long work. What boards had in mind at its begin has faded to 2% by then.
constexpr Time kGrain{1'000'000}, kRemembered{200'000'000};

double kept_after(Time passed) {
  return std::exp(-passed.seconds() / PowerGovernor::kWindow);
}

// (1 - exp(-x)) / x, the mean of what is left of a window's time x that ends now. Most ops take microseconds:
// for them by the series, to 1e-16 and without a division.
double mean_kept(double x) {
  if (x > 1e-2) return -std::expm1(-x) / x;
  return 1 - x * (1.0 / 2 -
                  x * (1.0 / 6 - x * (1.0 / 24 - x * (1.0 / 120 - x * (1.0 / 720 - x * (1.0 / 5040))))));
}

}  // namespace

void PowerGovernor::Past::add(const Past& other, double share) {
  clocked += other.clocked * share;
  steady += other.steady * share;
  clocked_seconds += other.clocked_seconds * share;
  full_seconds += other.full_seconds * share;
}

PowerGovernor::Past PowerGovernor::Past::times(double share) const {
  return {clocked * share, steady * share, clocked_seconds * share, full_seconds * share};
}

void PowerGovernor::go_on(Past& past, Time& last, const Ended& ended) {
  const double windows = (ended.end - ended.start).seconds() / kWindow, counted = mean_kept(windows);
  past = past.times(ended.start == last ? 1 - windows * counted : kept_after(ended.end - last));
  past.add(ended.work, counted);  // the rest has faded
  last = ended.end;
}

void PowerGovernor::ended(const OpEnergy& energy, double clock, Time start, Time end) {
  const double seconds = (end - start).seconds();
  if (seconds <= 0) return;
  const double ran = energy.follows_clock ? seconds : 0;
  Ended ended{{energy.clocked, energy.steady, ran, ran * clock}, start, end, 1};
  go_on(past_, last_, ended);
  clock_ = clock_at_limit(past_);
  if (!remembers_) return all_.add(ended.work, 1);
  if (again_) ended_.clear(), repeated_ = {};
  again_ = false;
  ended.clock_after = clock_;
  repeated_.add(ended.work, 1);
  remember(ended);
}

void PowerGovernor::remember(const Ended& ended) {
  if (most_.ns > 0 && ended.end - begin_.now > most_ && !ended_.empty()) return;
  if (ended_.empty() || ended.end - ended_.back().start >= grain_) return ended_.push_back(ended);
  Ended& before = ended_.back();
  before.work.add(ended.work, 1);
  before.end = ended.end;
  before.clock_after = ended.clock_after;
}

double PowerGovernor::mean_clock() const {
  Past all = all_;
  all.add(repeated_, 1);
  return all.clocked_seconds > 0 ? all.full_seconds / all.clocked_seconds : 1;
}

void PowerGovernor::forget(Time now) {
  all_.add(repeated_, 1);
  repeated_ = {};
  ended_.clear();
  remembers_ = true;
  grain_ = most_ = {};
  again_ = false;
  past_ = {};
  clock_ = 1;
  last_ = now;
  begin_ = {.now = now, .last = now, .past = {}, .clock = 1};
}

BoardPast PowerGovernor::past(Time now) const {
  return {past_.clocked, past_.steady, past_.clocked_seconds, past_.full_seconds, now - last_};
}

void PowerGovernor::begin(const BoardPast& past, Time now) {
  forget(now);
  past_ = {past.clocked, past.steady, past.clocked_seconds, past.full_seconds};
  clock_ = clock_at_limit(past_);
  last_ = now - past.since;
  begin_ = {.now = now, .last = last_, .past = past_, .clock = clock_};
  grain_ = kGrain;
  most_ = kRemembered;
}

// Run without end, what a piece of work of length T leaves behind adds up to 1 / (1 - exp(-T / window)) of
// it. Whether that makes a difference is seen by letting the same ops end once more.
bool PowerGovernor::repeat(Time now) {
  if (ended_.empty() || again_) return false;
  Past past = past_;
  past.add(begin_.past, -kept_after(last_ - begin_.last));
  past_ = past.times(1 / (1 - kept_after(now - begin_.now)));
  clock_ = clock_at_limit(past_);
  Past again = past_;
  Time last = begin_.now - (now - last_);
  double then = begin_.clock, clock = clock_, seconds = 0;
  bool differs = std::abs(clock - then) > kSameClock;
  for (const Ended& ended : ended_) {
    seconds += ended.work.clocked_seconds * std::abs(then / clock - 1);
    go_on(again, last, ended);
    then = ended.clock_after;
    clock = clock_at_limit(again);
    differs |= std::abs(clock - then) > kSameClock;
  }
  changed_ = seconds / (now - begin_.now).seconds();
  begin_ = {.now = now, .last = last_, .past = past_, .clock = clock_};
  again_ = true;
  return differs;
}

// Two ops beside each other may follow the clock at once: then all of the time does.
double PowerGovernor::clock_at_limit(const Past& past) const {
  if (power_.limit <= 0) return 1;
  const double dynamic = power_.limit - power_.idle;
  // Mostly nothing ran below the full clock and the limit is far: then c = 1 without a division.
  if (past.full_seconds == past.clocked_seconds && past.clocked + past.steady < dynamic * kWindow * 0.999)
    return 1;
  const double beside = kWindow * std::max(1.0, past.clocked_seconds / kWindow);
  return moebius::clock_at_limit(power_, {.clocked = past.clocked / kWindow,
                                          .steady = past.steady / kWindow,
                                          .full = past.full_seconds / beside,
                                          .rest = 1 - past.clocked_seconds / beside});
}

}  // namespace moebius
