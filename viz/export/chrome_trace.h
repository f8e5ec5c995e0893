// Chrome's Trace Event Format (JSON), as chrome://tracing and ui.perfetto.dev read it. Format: "Trace Event
// Format", Google, 2016: X = complete event, C = counter, s and f = begin and end of a flow, M = name of a
// process or thread; times in microseconds, here with three decimals, printed from integers.
#pragma once

#include <string>

#include "workloads/schedule/span_columns.h"

namespace moebius::viz {

// A process for each rank class, a thread for each of its lanes, a counter for each counter of a class, and a
// flow from each send to its receive. Written as it is read: memory does not follow the number of spans, but
// that of sends.
void export_chrome(const SpanColumns& run, const std::string& path);

}  // namespace moebius::viz
