#include "sim/power_governor.h"

#include <algorithm>
#include <cmath>

namespace moebius {
namespace {

constexpr int kSteps = 6;  // from 1 to within 1e-6 of any clock above a half

}  // namespace

void PowerGovernor::ended(const OpEnergy& energy, double clock, Time start, Time end) {
  const double seconds = (end - start).seconds();
  if (seconds <= 0) return;
  const double faded = std::exp(-seconds / kWindow);
  const double kept = start == last_ ? faded : std::exp(-(end - last_).seconds() / kWindow);
  const double counted = kWindow / seconds * (1 - faded);  // the rest has faded
  last_ = end;
  const double ran = energy.follows_clock ? seconds : 0;
  clocked_ = clocked_ * kept + energy.clocked * counted;
  steady_ = steady_ * kept + energy.steady * counted;
  clocked_seconds_ = clocked_seconds_ * kept + ran * counted;
  full_seconds_ = full_seconds_ * kept + ran * clock * counted;
  clocked_all_ += ran;
  full_all_ += ran * clock;
  clock_ = clock_at_limit();
}

// The same work takes as long as it took, but for what follows the clock; two ops beside each other may
// follow it at once, then all of the time does. With D = limit - idle, per second: D (rest + full / c) =
// steady + clocked c^2, or
//   clocked c^3 + (steady - D rest) c - D full = 0,
// which is convex and has one root above 0: Newton's steps from above stay above it.
double PowerGovernor::clock_at_limit() const {
  const double dynamic = power_.limit - power_.idle;
  const double beside = kWindow * std::max(1.0, clocked_seconds_ / kWindow);
  const double rest = 1 - clocked_seconds_ / beside, full = full_seconds_ / beside;
  const double clocked = clocked_ / kWindow, slope = steady_ / kWindow - dynamic * rest;
  double clock = 1;
  for (int i = 0; i < kSteps; ++i) {
    const double above = clocked * clock * clock * clock + slope * clock - dynamic * full;
    if (above <= 0) break;
    clock -= above / (3 * clocked * clock * clock + slope);
  }
  return std::max(kLeastClock, clock);
}

}  // namespace moebius
