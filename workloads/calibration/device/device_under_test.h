// A device as calibration sees it: what is known of it beforehand, a bench for its ops, and what measures the
// rest. Devices are real/'s; main hands one in.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hw/accelerator.h"
#include "hw/device_figures.h"
#include "workloads/calibration/device/case_plan.h"
#include "workloads/calibration/device/figures_time.h"
#include "workloads/cost/op_bench.h"

namespace moebius {

struct DeviceUnderTest {
  // Id, architecture and what else is known. Without any peak: peaks, memory rate and shortest kernel are
  // taken from the measurements (measured_reference()).
  Accelerator reference;
  CaseSizes sizes;
  double budget = 240;     // seconds that a calibration takes when nobody says
  bool sustained = false;  // clocks of the measurements: ProfileTable::sustained
  std::unique_ptr<OpBench> bench;
  // Launches, transfers and interference; name and driver filled in.
  std::function<DeviceFigures(const FiguresTime&)> measure_figures;
  std::function<std::string()> clocks;  // now: "1980 MHz"; empty: unknown
};

}  // namespace moebius
