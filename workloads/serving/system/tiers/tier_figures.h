// What tiers below device memory did.
#pragma once

#include <cstdint>

namespace moebius {

struct TierFigures {
  std::int64_t asked = 0;  // blocks of prompts when they were first admitted; the next six add up to it
  std::int64_t hit_device = 0, hit_dram = 0, hit_ssd = 0, hit_remote_dram = 0, hit_remote_ssd = 0;
  std::int64_t missed = 0;
  std::int64_t recomputed = 0;  // of those missed, that were below: computing them was sooner
  std::int64_t stale = 0;       // times that a node did not have what the index said
  double to_device_bytes = 0, from_device_bytes = 0, ssd_read_bytes = 0, ssd_written_bytes = 0;
  double network_bytes = 0, index_bytes = 0;
  std::int64_t index_lookups = 0, index_updates = 0;
  std::int64_t dram_capacity = 0, dram_peak = 0,
               dram_evicted = 0;  // blocks; of all nodes, peak of the fullest
  std::int64_t ssd_capacity = 0, ssd_peak = 0, ssd_evicted = 0;
  std::int64_t ssd_refused = 0;  // blocks that were not written: the drives had too many before them
  std::int64_t prefetched = 0, prefetch_used = 0, prefetch_wasted = 0;  // blocks; wasted: went, or never used
  std::int64_t prefetched_ahead = 0;  // of those prefetched, before the request that needs them was there
  double saved_s = 0;    // of iterations alone: computing what came from below, less waiting for it
  double stalled_s = 0;  // that iterations were longer for blocks on their way, or for room

  void add(const TierFigures& other);
};

}  // namespace moebius
