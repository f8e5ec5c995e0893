// What a fabric is made of and what it can do, by arithmetic: switches, bisection, distances, largest sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/fabric/fabric.h"

namespace moebius {

// Switches of one tier, as few as have the ports: each leaf is linked alike to the spines of its plane, each
// spine alike to the cores. Ports are those in use with every place on the leaves taken.
struct SwitchTier {
  std::string name;  // "leaf", "spine", "core"
  std::int64_t switches = 0;
  int down = 0, up = 0;         // ports of one switch
  ByteRate down_rate, up_rate;  // achieved, of one port
};

// An example of each distance that occurs from device 0, and of a message that changes rail.
struct Way {
  Distance distance = Distance::kSelf;
  bool changes_rail = false;
  int from = 0, to = 0;
  int switches = 0;
  int paths = 0;  // equal ones, see Fabric::num_paths
  Time latency;
};

struct FabricFigures {
  std::vector<SwitchTier> tiers;  // from the leaves up
  double oversubscription =
      1;               // of all tiers together: NICs of the largest pod over what its core links carry
  ByteRate bisection;  // achieved: from the first half of the nodes to the second, by switches
  ByteRate half_nics;  // what the NICs of that half could send
  std::vector<Way> ways;
};
FabricFigures figures_of(const Fabric& fabric);

// The most that nodes [0, split) send to the others over switches, every NIC at its rate: what the tree of
// bundles lets through.
ByteRate cut_rate(const Fabric& fabric, int split);

// The largest number of nodes like `pool` that fit with so many tiers; 0: none does.
int most_nodes(FabricSpec spec, FabricPool pool, int tiers);

}  // namespace moebius
