// Keys of `/workload/trace`: a file of requests, or a generator.
#pragma once

#include "workloads/scenario/section.h"
#include "workloads/serving/traffic/traffic_source.h"

namespace moebius {

TrafficSource read_traffic(Section section, std::uint64_t seed);

}  // namespace moebius
