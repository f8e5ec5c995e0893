// What ranks on threads of this host do beside their kernels: copies, meetings, neighbours on other cores.
#pragma once

#include <cstddef>
#include <string>

#include "hw/device_figures.h"
#include "workloads/calibration/device/figures_time.h"
#include "workloads/cost/op_bench.h"

namespace moebius {

// Bytes of other memory that are read between two uses of an operand, in the two states of the caches that
// profiles know.
struct HostWalks {
  std::size_t hot = 0, cold = 0;
};

// In that time:
// - launch: the smallest op there is, cores' time; launch_latency: 0, a rank's thread runs its ops itself.
// - "d2d": one thread copies memory that its caches do not hold, its core's time.
// - kExchange: two ranks on threads meet (real/exchange.h) and each copies the other's piece: the core's time
//   of one of them, the meeting included, waiting not.
// - measure_host_exchange() with walks.hot, and with walks.cold under cold_exchange_name().
// - kStorageRead, kStorageWrite in `directory` (storage_figures.h), where it can.
// - a GEMM on one core beside copies on another, where there are two.
// The date is left to the caller.
DeviceFigures measure_host_figures(OpBench& bench, const std::string& directory, const FiguresTime& time,
                                   HostWalks walks = {});

std::string host_clocks();  // "2600 MHz", the mean over the cores now; empty where the system does not say

}  // namespace moebius
