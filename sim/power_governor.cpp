#include "sim/power_governor.h"

#include <algorithm>
#include <cmath>

namespace moebius {

void PowerGovernor::ended(const OpEnergy& energy, double clock, Time start, Time end) {
  const double seconds = (end - start).seconds();
  if (seconds <= 0) return;
  const double kept = std::exp(-(end - last_).seconds() / kWindow);
  const double counted = kWindow / seconds * (1 - std::exp(-seconds / kWindow));  // the rest has faded
  last_ = end;
  const double ran = energy.follows_clock ? seconds : 0;
  clocked_ = clocked_ * kept + energy.clocked * counted;
  steady_ = steady_ * kept + energy.steady * counted;
  clocked_seconds_ = clocked_seconds_ * kept + ran * counted;
  full_seconds_ = full_seconds_ * kept + ran * clock * counted;
  clocked_all_ += ran;
  full_all_ += ran * clock;
  clock_ = watts_at(1) <= power_.limit ? 1 : clock_at_limit();
}

// The same work takes as long as it took, but for what follows the clock. Two ops beside each other may
// follow it at once: then all of the time does.
double PowerGovernor::watts_at(double clock) const {
  const double beside = std::max(1.0, clocked_seconds_ / kWindow);
  const double time = 1 - (clocked_seconds_ - full_seconds_ / clock) / kWindow / beside;
  return power_.idle + (steady_ + clocked_ * clock * clock) / kWindow / time;
}

double PowerGovernor::clock_at_limit() const {
  double low = kLeastClock, high = 1;
  for (int i = 0; i < 24; ++i) {
    const double middle = (low + high) / 2;
    (watts_at(middle) <= power_.limit ? low : high) = middle;
  }
  return low;
}

}  // namespace moebius
