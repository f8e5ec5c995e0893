// A kernel's cost over one of its sizes on one chip, as runs are told it: the cost model made visible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/cost/clock_power.h"
#include "workloads/cost/cost_source.h"
#include "workloads/cost/kernel_kinds.h"

namespace moebius {

struct KernelPoint {
  std::int64_t x = 0;  // on the axis of the sweep
  Cost cost;
  double flops = 0;  // of the kernel
  double bytes = 0;  // each operand read once, each result written once
  double bound = 0;  // seconds of the roofline on the cores held
  double clock = 1;  // share of the full one at which the board runs the kernel without end
  double step = 0;   // the time is longer by this share than one grain before: a new wave; zero: no step

  double flop_rate() const { return flops / cost.seconds; }
  double byte_rate() const { return bytes / cost.seconds; }
  double sustained_seconds() const { return cost.seconds / clock; }
};

struct KernelCurve {
  Accelerator chip;
  KernelSweep sweep;
  std::string costs = {};                 // CostSource::description
  DType products = DType::kBf16;          // that its kernel multiplies in
  double limit = 0;                       // watts, for the clock; 0: not known, or counted in the costs
  std::vector<KernelPoint> points = {};   // ascending: the sweep's factor, and both sides of the first steps
  std::vector<KernelPoint> columns = {};  // of the plot: evenly spaced on the logarithmic axis, each x once
};

// input_error as kernel_sweep.
KernelCurve kernel_curve(const KernelRequest& request, const Accelerator& chip, const CostSource& costs,
                         const ClockPower& power = {});

inline constexpr int kKernelCurveColumns = 110;  // no line is wider
// The table, and below it the plot.
std::string to_text(const KernelCurve& curve);

}  // namespace moebius
