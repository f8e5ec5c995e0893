#include "sim/traffic/host_copies.h"

#include <algorithm>

namespace moebius {
namespace {

int ranks_on_node(const RankClass& ranks, int node, const Sites& sites) {
  return static_cast<int>(std::count_if(ranks.ranks.begin(), ranks.ranks.end(), [&](std::int32_t rank) {
    return sites.fabric().node_of(sites.device_of(rank)) == node;
  }));
}

}  // namespace

TransferPlan host_copy(const Op& op, int rank_class, const Sites& sites, WireTable& wires,
                       bool shares_wires) {
  const Fabric& fabric = sites.fabric();
  const RankClass& ranks = sites.layout().classes[rank_class];
  const int device = sites.device_of(ranks.representative());
  const Fabric::Standing place = fabric.standing(device);
  const FabricPool& pool = fabric.pools()[place.pool];
  Step step;
  step.latency = pool.copy_latency.seconds();
  FlowClass flow{.bytes = op.payload.value, .links = {}};
  const bool has_host = pool.host_rate.value > 0 && pool.host_memory_rate.value > 0;
  if (has_host && !sites.cluster().exchange) {
    const WireKind link = op.kind == OpKind::kCopyToHost ? WireKind::kHostOut : WireKind::kHostIn;
    flow.links.push_back({wires.wire({link, device}), 1});
    flow.links.push_back({wires.wire({WireKind::kHostMemory, device - place.local}),
                          static_cast<double>(ranks_on_node(ranks, place.node, sites))});
  } else {
    flow.links.push_back({wires.local_copy(device), 1});
  }
  double seconds = 0;
  for (const Link& link : flow.links)
    seconds = std::max(seconds, flow.bytes * link.weight / wires.capacity(link.wire));
  step.alone = step.latency + seconds;
  step.own = shares_wires ? seconds : 0;
  if (shares_wires) {
    step.flows.push_back(std::move(flow));
  } else {
    step.latency = step.alone;
  }
  return {{std::move(step)}};
}

}  // namespace moebius
