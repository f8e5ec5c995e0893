// What a rank has in its cache of some sequences, on its way: to the cache of a rank that decodes, or to the
// host's memory and back. Written as ops like all others: rows are read back by their pages, travel, and go
// in.
#pragma once

#include <vector>

#include "workloads/serving/kv/page_tables.h"
#include "workloads/serving/lower.h"

namespace moebius {

// A request whose prompt is computed: all of its keys, what delta networks keep of it, and its first token.
struct CacheMove {
  const ServingShape& shape;  // of the rank's instance
  std::int32_t request = 0, prompt = 0;
  std::vector<std::int32_t> pages;  // here
  std::int32_t state = 0;           // its row here
  int peer = 0;                     // in the world group: who gets it, or sends it
};
FragmentPtr lower_cache_send(const CacheMove& move);
FragmentPtr lower_cache_receive(const CacheMove& move);

// Preempted sequences, in this order; the host has room for `host_pages`.
FragmentPtr lower_swaps(const ServingShape& shape, std::int32_t host_pages,
                        const std::vector<kv::SwappedKeys>& swapped);

}  // namespace moebius
