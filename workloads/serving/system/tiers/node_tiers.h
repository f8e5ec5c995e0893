// One node's tiers and ways, and what moving blocks over them takes.
#pragma once

#include <array>
#include <cstdint>

#include "workloads/serving/system/tiers/shared_link.h"
#include "workloads/serving/system/tiers/tier_rules.h"
#include "workloads/serving/system/tiers/tier_store.h"

namespace moebius {

struct NodeTiers {
  explicit NodeTiers(const TierRules& rules);

  TierStore dram, ssd;
  SharedLink memory, drives;
};

// Of a replica.
struct ReplicaWays {
  explicit ReplicaWays(const TierRules& rules);

  SharedLink to_device, from_device;
};

// Of a replica, or of several that share it.
struct NicWays {
  explicit NicWays(const TierRules& rules);

  SharedLink sends, takes_in;
};

// Seconds of work on each way, for so many blocks.
struct WayWork {
  explicit WayWork(const TierRules& rules);
  double host_link = 0, memory = 0, nic = 0, ssd_read = 0, ssd_write = 0;  // a block
  // Drives work side by side, but one read or write is on one of them.
  double least_read = 0, least_write = 0;
  double reads(double blocks) const { return blocks > 0 ? std::max(least_read, blocks * ssd_read) : 0; }
  double writes(double blocks) const { return blocks > 0 ? std::max(least_write, blocks * ssd_write) : 0; }
};

}  // namespace moebius
