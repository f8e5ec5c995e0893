// Curves of transfers: repeated measurements at growing sizes, and the line through them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hw/device_figures.h"

namespace moebius {

// latency, rate and fit_error of the points: least squares of relative errors, no latency below zero. CHECKs
// that there is a point; with one alone the latency is zero.
void fit_line(TransferCurve& curve);

struct TransferSweepPlan {
  std::string name;
  std::vector<double> bytes;  // ascending
  double seconds = 1;         // for all sizes together
};

// Calls once(bytes), which returns the seconds of one transfer, of every size at least three times, most
// sizes more often, after one call that does not count; and fits the line.
TransferCurve measure_transfers(const TransferSweepPlan& plan, const std::function<double(double bytes)>& once);

}  // namespace moebius
