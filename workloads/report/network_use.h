// What the network carried in a run, tier by tier: for the report's network section.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moebius {

// The ports of one tier in one direction: of the switches (nodes, NICs) that carried anything, all that work.
// Of a folded run: those that were simulated; what belongs to a device counts for all that it stands for.
struct TierUse {
  std::string tier;              // "leaf up"
  bool in_network = true;        // false: inside nodes
  bool counts_messages = false;  // what NICs post: `bytes` are messages
  std::int64_t ports = 0;
  double bytes = 0;     // over all of them
  double capacity = 0;  // bytes per second, of all of them
  double longest = 0;   // s that the port with the most to carry needs for it

  // Most over mean: 1 when all ports carry alike.
  double imbalance() const { return bytes > 0 ? longest * capacity / bytes : 1; }
  double busy_share(double seconds) const { return seconds > 0 ? bytes / capacity / seconds : 0; }
  double most_busy_share(double seconds) const { return seconds > 0 ? longest / seconds : 0; }
};

struct NetworkUse {
  std::string routing;  // "ecmp"; of a network without switches empty
  int queue_pairs = 1;
  int damaged = 0;              // parts that are broken or slowed
  std::int64_t most_flows = 0;  // single flows under way at a time; 0: cost followed classes
  bool folded = false;
  bool shares_wires =
      true;  // false: every transfer went as if alone, so that a port may be busy beyond the run
  std::vector<TierUse> tiers;
  // Of steps with messages through host memory (CPU forwarding): how long the busiest wire of each tier on
  // the way needs for what they carry, and how long the steps take alone.
  struct Stage {
    std::string tier;
    double seconds = 0;
  };
  std::vector<Stage> forwarding;
  double forwarding_seconds = 0;

  // The stage that binds those steps; null: there are none.
  const Stage* slowest_stage() const {
    const Stage* most = nullptr;
    for (const Stage& stage : forwarding) {
      if (most == nullptr || stage.seconds > most->seconds * (1 + 1e-9)) most = &stage;
    }
    return most;
  }

  // The tier of switches and NICs that the traffic filled most, all ports taken together: what it achieved of
  // that tier's bandwidth is what it achieved of what the network could carry of this traffic. Null: none.
  const TierUse* narrowest() const {
    const TierUse* most = nullptr;
    for (const TierUse& tier : tiers) {
      if (!tier.in_network || tier.bytes <= 0) continue;
      // Of equally full ones the one highest up.
      if (most == nullptr || tier.bytes / tier.capacity > most->bytes / most->capacity * (1 - 1e-9))
        most = &tier;
    }
    return most;
  }
  // The tier with the wire that needs longest for what it carried, inside nodes or between them: what binds.
  // Of equal ones the first on the way. Null: nothing was carried.
  const TierUse* binding() const {
    const TierUse* most = nullptr;
    for (const TierUse& tier : tiers) {
      if (tier.longest > 0 && (most == nullptr || tier.longest > most->longest * (1 + 1e-9))) most = &tier;
    }
    return most;
  }
  // A port carried more than fits into the run, which wires that are not shared allow: nothing binds.
  bool beyond_the_run(double seconds) const {
    const TierUse* most = binding();
    return !shares_wires && most != nullptr && most->most_busy_share(seconds) > 1;
  }
  // The largest of the tiers of switches and NICs, of ports that carried something.
  double port_imbalance() const {
    double most = 1;
    for (const TierUse& tier : tiers) {
      if (tier.in_network && !tier.counts_messages) most = tier.imbalance() > most ? tier.imbalance() : most;
    }
    return most;
  }
};

}  // namespace moebius
