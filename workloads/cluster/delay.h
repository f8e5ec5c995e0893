// A time that differs from case to case.
#pragma once

#include <algorithm>
#include <cmath>

#include "hw/units.h"
#include "workloads/routing/random_stream.h"

namespace moebius {

// Lognormal: `mean` is the mean, `sigma` the standard deviation of the logarithm. 0: always the mean.
struct Delay {
  Time mean;
  double sigma = 0;

  Time draw(RandomStream& random) const {
    if (mean.ns == 0 || sigma == 0) return mean;
    constexpr double kLongest = 1e9;  // longer than any course, so that it is not over before that is
    const double drawn = mean.seconds() * std::exp(sigma * random.normal() - sigma * sigma / 2);
    return time_from_seconds(std::min(drawn, kLongest));
  }
};

}  // namespace moebius
