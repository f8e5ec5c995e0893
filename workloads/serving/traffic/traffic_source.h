// Where the requests of a scenario come from: a file, or else a generator.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "workloads/serving/traffic/generator.h"
#include "workloads/serving/traffic/trace_file.h"

namespace moebius {

struct TrafficSource {
  std::optional<TraceFile> file;  // goes before the generator
  Generator generator;
  std::string generator_name;
  bool spread_arrivals = false;  // see spread_arrivals()

  std::int64_t block_tokens() const { return file ? file->block_tokens : generator.block_tokens; }
};

std::unique_ptr<TrafficStream> open_traffic(const TrafficSource& source);

// "generator conversation, 12031 requests", "a trace file, arrivals spread": without its path.
std::string describe(const TrafficSource& source);

}  // namespace moebius
