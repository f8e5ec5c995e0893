// Perfetto's trace in protobuf, written by hand: the fields used are those of protos/perfetto/trace/
// (trace.proto, trace_packet.proto, track_event/*.proto) of the Perfetto project; perfetto_trace.cpp names
// each.
#pragma once

#include <string>

#include "workloads/schedule/span_columns.h"

namespace moebius::viz {

// A process track for each rank class, a thread-like track for each of its lanes, a counter track for each
// counter of a class; sends and their receives share a flow id. Written as it is read, like export_chrome().
void export_perfetto(const SpanColumns& run, const std::string& path);

}  // namespace moebius::viz
