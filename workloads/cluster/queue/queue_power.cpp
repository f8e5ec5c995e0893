// What the building draws, and the clocks that a cap leaves. What a card draws above its idle share falls
// with the clock's cube: the energy of an operation grows with the clock's square
// (workloads/cost/architecture.h), and so many fewer are done.
#include <algorithm>
#include <cmath>

#include "workloads/cluster/queue/queue_run.h"

namespace moebius {

namespace {
constexpr double kLowestClock = 0.4;  // of the highest
constexpr double kClockStep = 0.01;   // so that clocks do not change with every job
}  // namespace

double QueueRun::base_watts() const {
  double watts = 0;
  for (const CardPool& pool : in_.plan.pools) {
    const double devices = pool.node_power.value - pool.overhead_power.value;
    watts += pool.nodes *
             (pool.overhead_power.value + in_.cluster.power.idle * devices - in_.cluster.cooling.saved.value);
  }
  return watts;
}

// Of a card that computes, above idle, at the highest clock.
double QueueRun::card_watts(int of) const {
  const CardPool& pool = in_.plan.pools[of];
  const double card = (pool.node_power.value - pool.overhead_power.value) / pool.cards;
  return card * (in_.cluster.power.busy - in_.cluster.power.idle);
}

double QueueRun::dynamic_watts(const QueuedRun& run) const {
  return run.stage == RunStage::kRunning ? static_cast<double>(run.cards) * card_watts(run.pool) : 0;
}

// At the meter; 0: none.
double QueueRun::cap_now() const {
  double cap = 0;
  for (const PowerCap& of : in_.plan.caps)
    if (of.from <= now_ && now_ < of.until) cap = cap == 0 ? of.watts.value : std::min(cap, of.watts.value);
  return cap;
}

// Who has cards computes sooner or later.
void QueueRun::begin_cap() {
  pass_cap_ = cap_now();
  pass_watts_ = 0;
  cap_holds_ = false;
  for (std::size_t p = 0; pass_cap_ > 0 && p < holders_.size(); ++p) {
    for (const int r : holders_[p])
      pass_watts_ += static_cast<double>(runs_[r].cards) * card_watts(static_cast<int>(p));
  }
}

// Whether clocks can go down so far that the cap is kept when so many cards more compute.
bool QueueRun::cap_allows(int pool, std::int64_t more) const {
  if (pass_cap_ <= 0) return true;
  const double busy = pass_watts_ + static_cast<double>(more) * card_watts(pool);
  const double least = base_watts() + busy * kLowestClock * kLowestClock * kLowestClock;
  return in_.cluster.power.pue * least <= pass_cap_ * (1 + 1e-9);
}

// On none of its pools, however small. Who is held holds those behind it, or small jobs would take all power
// from a large one for ever.
bool QueueRun::held_by_cap(const QueuedRun& run) {
  if (pass_cap_ <= 0) return false;
  const int size = least_size(run);
  const std::vector<int>& pools = pools_for(run, size);
  const bool held = std::none_of(pools.begin(), pools.end(),
                                 [&](int pool) { return cap_allows(pool, cards_of(run, size)); });
  cap_holds_ = cap_holds_ || held;
  return held;
}

// What was drawn since the last time, as it was then; what lasted for no time was never drawn.
void QueueRun::spend_power() {
  const double past = (now_ - power_since_).seconds();
  course_.energy_j += watts_ * past;
  if (past > 0) course_.peak_w = std::max(course_.peak_w, watts_);
  if (clock_ < 1) course_.throttled += now_ - power_since_;
  if (cap_ > 0 && watts_ > cap_ * (1 + 1e-9)) course_.over_cap_s += past;
  power_since_ = now_;
}

void QueueRun::power_changed() {
  spend_power();
  const double pue = in_.cluster.power.pue;
  busy_watts_ = 0;
  for (const std::vector<int>& here : holders_)
    for (const int r : here) busy_watts_ += dynamic_watts(runs_[r]);
  const double base = base_watts();
  cap_ = cap_now();
  double clock = 1;
  if (cap_ > 0 && busy_watts_ > 0 && pue * (base + busy_watts_) > cap_) {
    const double left = std::max(0.0, cap_ / pue - base);
    clock =
        std::max(kLowestClock, std::floor(std::cbrt(left / busy_watts_) / kClockStep + 1e-9) * kClockStep);
  }
  if (clock != clock_) {
    // What was computed until now was computed at the clock before.
    for (QueuedRun& run : runs_)
      if (run.stage == RunStage::kRunning) book(run);
    clock_ = clock;
    for (QueuedRun& run : runs_) set_speed(run);
  }
  watts_ = pue * (base + busy_watts_ * clock_ * clock_ * clock_);
  if (listeners_.power) listeners_.power(now_, watts_);
}

}  // namespace moebius
