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

// The same, whose blocks have block_tokens() each (`as_told`), or else as many as the first ones: input_error
// for a request with others, which no cache of such blocks would know.
std::unique_ptr<TrafficStream> open_traffic_of_one_block_size(const TrafficSource& source, bool as_told);

// "generator conversation, 12031 requests", "a trace file, arrivals spread": without its path.
std::string describe(const TrafficSource& source);

}  // namespace moebius
