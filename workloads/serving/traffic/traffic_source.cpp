#include "workloads/serving/traffic/traffic_source.h"

#include <fmt/format.h>

namespace moebius {

std::unique_ptr<TrafficStream> open_traffic(const TrafficSource& source) {
  std::unique_ptr<TrafficStream> traffic =
      source.file ? open_trace(*source.file) : generate(source.generator);
  return source.spread_arrivals ? spread_arrivals(std::move(traffic)) : std::move(traffic);
}

std::string describe(const TrafficSource& source) {
  const std::string from = source.file ? "a trace file"
                                       : fmt::format("generator {}, {} requests", source.generator_name,
                                                     source.generator.requests);
  return from + (source.spread_arrivals ? ", arrivals of one stamp spread to the next" : "");
}

}  // namespace moebius
