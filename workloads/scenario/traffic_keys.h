// Keys of `/workload/trace`: a file of requests, or a generator.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/scenario/section.h"
#include "workloads/serving/plan.h"
#include "workloads/serving/traffic/traffic_source.h"

namespace moebius {

TrafficSource read_traffic(Section section, std::uint64_t seed);

// Where a path on the command line stands in for the generator of the scenario's file, that one's keys go: a
// document that is written has no command line beside it.
void keep_path_alone(Document& document);

// [LEAST, MOST]: whole numbers of tokens, at least 1, the smaller one first; nothing where it is none.
struct LengthEnds {
  std::int64_t least = 1, most = 1;
};
std::optional<LengthEnds> length_ends(const Value& pair);
// A number of tokens, or a law that draws it; `place` is where the value stands.
LengthRange length_range(const Value& value, const Place& place);

// The same, or a batch: requests that are all there at the beginning.
struct ServedTraffic {
  std::optional<TrafficSource> source;  // nothing: a batch
  int requests = 0;
  LengthRange input, output;  // of a batch
};
ServedTraffic read_served_traffic(Section section, std::uint64_t seed);

}  // namespace moebius
