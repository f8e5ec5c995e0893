// What a scenario says of the tiers below device memory: how large they are, what is moved between them and
// when. Plain data that the scenario reader checks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "hw/node.h"
#include "hw/units.h"
#include "workloads/serving/kv/eviction/eviction.h"

namespace moebius {

// Of blocks that stand on an SSD or on another node, for a request that waits.
enum class PrefetchPolicy : std::uint8_t {
  kNone,        // nothing moves before the request is admitted
  kBestEffort,  // they move to host memory on arrival; the request is admitted as if they did not
  kWait,        // and it is admitted when all of them are there
  kTimeout,     // or when it has waited for so long
};

// Before a request that will need them is there.
enum class PrefetchAhead : std::uint8_t {
  kNone,
  kSession,  // of the next turn of a session: all that its last one had
  kPattern,  // what requests of one kind begin with, when the next one of that kind is due
  kBoth,
};

// When a block goes to the tiers below.
enum class WritePolicy : std::uint8_t {
  kThrough,     // to all of them when it is computed
  kSelective,   // to host memory when it is used a second time, from there to the SSD when it has to leave
  kBack,        // to host memory when it is computed, from there to the SSD when it has to leave
  kOnEviction,  // to the next tier when it has to leave: who needs the room waits for the copy
};

struct TierPlan {
  Bytes dram, ssd;                       // of a node; 0: there is no such tier
  double dram_price = 0, ssd_price = 0;  // USD of a terabyte for an hour; 0: it comes with the node
  Storage device;                        // the drives of a node
  int devices = 0;                       // how many; 0: as many as the node has
  int queue_depth = 32;                  // reads or writes that a drive has at a time
  bool ssd_second_use = false;           // only blocks that were used twice go to the SSD
  bool cluster = false;                  // blocks of other nodes are found too
  Time staleness;                        // until other nodes know of a change
  PrefetchPolicy prefetch = PrefetchPolicy::kNone;
  Time prefetch_limit;           // of kTimeout
  double prefetch_budget = 0.5;  // of a link's rate
  PrefetchAhead ahead = PrefetchAhead::kNone;
  kv::EvictionKind eviction = kv::EvictionKind::kLru;  // of every tier
  WritePolicy write = WritePolicy::kBack;
  bool exclusive = false;    // a block that comes up leaves the tier where it was
  bool always_load = false;  // otherwise what is sooner: loading a block or computing it again
  bool layerwise = true;     // a layer is computed when its blocks are there; otherwise when all are

  int drives_of(const Node& node) const {
    return devices > 0 ? devices : std::max(1, static_cast<int>(node.storage.size()));
  }
  double usd_per_node_hour() const { return (dram.value * dram_price + ssd.value * ssd_price) * 1e-12; }
  bool on() const { return dram.value > 0 || ssd.value > 0; }
};

}  // namespace moebius
