// Requests against one shared cache of blocks: how many of the blocks of their inputs are there already. The
// leading blocks that are there when a request arrives are its hits; once it has been served its blocks are
// in the cache, the first one as the one used last.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/serving/kv/block_index.h"
#include "workloads/serving/traffic/traffic_request.h"

namespace moebius::kv {

// How the index finds blocks. Hits are the same.
enum class IndexStructure : std::uint8_t {
  kHash,    // each by its hash
  kTrie,    // a tree of runs (prefix_trie.h)
  kHybrid,  // leading blocks by hash, those of long inputs behind them in a tree (hybrid_index.h)
};

struct ReplayCache {
  std::optional<std::int64_t> capacity_blocks;  // nothing: endless
  EvictionKind eviction = EvictionKind::kLru;
  Time service_time;  // from a request's arrival until its blocks are in the cache; those it hit stay as long
  IndexStructure structure = IndexStructure::kHash;  // others: least recently used blocks go
  std::int64_t long_from = 0;  // tokens, of kHybrid: what an input has beyond them is in the tree
};

struct ReplayFigures {
  std::int64_t requests = 0, requests_fully_hit = 0;
  std::int64_t total_blocks = 0, hit_blocks = 0, distinct_blocks = 0;
  std::int64_t evicted_blocks = 0, resident_blocks = 0;                // at the end
  std::int64_t input_tokens = 0, output_tokens = 0, block_tokens = 0;  // block_tokens: of the first request
  std::int64_t index_bytes = 0;  // of memory that the index takes at the end, about
  Time last_arrival;

  double hit_share() const {
    return total_blocks == 0 ? 0 : static_cast<double>(hit_blocks) / static_cast<double>(total_blocks);
  }
};

// input_error: a request without blocks, or with blocks of another size than the first one's; and, but for
// kHash, a block that stands behind others than before.
ReplayFigures replay(TrafficStream& traffic, const ReplayCache& cache);

}  // namespace moebius::kv
