// Leaves under spines: the network on which paths are chosen and parts fail.
#pragma once

#include <vector>

#include "tests/laws/small_world.h"

namespace moebius {

// Leaves of `ports` nodes, as many uplinks; NICs of kNicRate.
struct TwoTiers {
  int leaves = 2;
  int ports = 8;
  int per_node = 1;
  Routing routing = Routing::kEcmp;
  int queue_pairs = 1;
  double oversubscription = 1;
  std::vector<PartHealth> damaged = {};
  int spine_ports = 1024;
  Time hop{500};   // each switch
  Time message{};  // of a NIC, to post one
  int nic_ports = 1;
};

inline Cluster two_tier_cluster(const TwoTiers& net) {
  const Cluster plain = make_cluster({.nodes = net.leaves * net.ports,
                                      .per_node = net.per_node,
                                      .hop_latency = net.hop,
                                      .leaf_ports = net.ports});
  FabricSpec spec = plain.fabric.spec();
  spec.tiers = 2;
  spec.routing = net.routing;
  spec.queue_pairs = net.queue_pairs;
  spec.message_time = net.message;
  spec.nic_ports = net.nic_ports;
  spec.oversubscription = net.oversubscription;
  spec.switch_ports = net.spine_ports;
  Cluster cluster{plain.pools, Fabric(spec, {part_of_fabric(plain.pools.front(), spec)})};
  cluster.damaged = net.damaged;
  return cluster;
}

inline Op all_to_all(double bytes) {
  return communication_op(OpKind::kAllToAll, bytes, Algorithm::kDirect);
}

}  // namespace moebius
