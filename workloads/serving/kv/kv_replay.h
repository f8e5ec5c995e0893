// Requests against one shared cache of blocks: how many of the blocks of their inputs are there already. The
// leading blocks that are there when a request arrives are its hits; once it has been served its blocks are
// in the cache, the first one as the one used last.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/serving/kv/block_index.h"
#include "workloads/serving/traffic/traffic_request.h"

namespace moebius::kv {

struct ReplayCache {
  std::optional<std::int64_t> capacity_blocks;  // nothing: endless
  EvictionKind eviction = EvictionKind::kLru;
  Time service_time;  // from a request's arrival until its blocks are in the cache; those it hit stay as long
};

struct ReplayFigures {
  std::int64_t requests = 0, requests_fully_hit = 0;
  std::int64_t total_blocks = 0, hit_blocks = 0, distinct_blocks = 0;
  std::int64_t evicted_blocks = 0, resident_blocks = 0;                // at the end
  std::int64_t input_tokens = 0, output_tokens = 0, block_tokens = 0;  // block_tokens: of the first request
  Time last_arrival;

  double hit_share() const {
    return total_blocks == 0 ? 0 : static_cast<double>(hit_blocks) / static_cast<double>(total_blocks);
  }
};

// input_error: a request without blocks, or with blocks of another size than the first one's.
ReplayFigures replay(TrafficStream& traffic, const ReplayCache& cache);

}  // namespace moebius::kv
