// The readers behind open_trace(): one for each form of file. Their lines stand before the first one.
#pragma once

#include <memory>

#include "workloads/serving/traffic/line_reader.h"
#include "workloads/serving/traffic/trace_file.h"

namespace moebius {

inline constexpr double kLastTraceMs = 1e12;  // thirty years
inline constexpr double kMostTraceBlockTokens = 1 << 20;

using LinesPtr = std::unique_ptr<LineReader>;

std::unique_ptr<TrafficStream> read_mooncake(LinesPtr lines, const TraceFile& file);
std::unique_ptr<TrafficStream> read_dynamo(LinesPtr lines);
std::unique_ptr<TrafficStream> read_azure(LinesPtr lines);
std::unique_ptr<TrafficStream> read_burstgpt(LinesPtr lines);

// Whether the first line of a CSV names the columns of this form.
bool is_azure_header(const std::string& line);
bool is_burstgpt_header(const std::string& line);

}  // namespace moebius
