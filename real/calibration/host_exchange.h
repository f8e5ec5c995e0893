// What communication between ranks costs on this host: not a copy alone, but all that an op of each kind does
// to its numbers (packing, rounding to the format on the wire, adding up).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hw/device_figures.h"
#include "workloads/calibration/device/figures_time.h"

namespace moebius {

// Curves named exchange_name(kind, dtype): CPU seconds of one member of an op with one operand against the
// bytes that workloads/schedule/local_exchange.h says it copies (host: 4 for each number). Four ranks in
// turns (of messages: two, and the seconds of sender and receiver together), as crosscheck executes them.
// Between two ops a rank reads `bytes_between` of other memory.
std::vector<TransferCurve> measure_host_exchange(const FiguresTime& time, std::size_t bytes_between = 0);

}  // namespace moebius
