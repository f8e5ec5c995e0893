#include <algorithm>

#include "sim/traffic/collectives/families.h"
#include "sim/traffic/collectives/rails.h"

namespace moebius {
namespace {

// What every member gives to the switches and takes from them.
struct Share {
  double given = 0, taken = 0;
};

Traffic through(std::int32_t the_switch, Share share, double latency, const GroupSites& group) {
  Traffic traffic;
  for (std::int32_t member = 0; member < group.size(); ++member) {
    if (share.given > 0) traffic.edges.push_back({member, the_switch, share.given});
    if (share.taken > 0) traffic.edges.push_back({the_switch, member, share.taken});
  }
  traffic.latency = latency;
  return traffic;
}

// From one member of a node to another, over its switch: a load that reduces is as long on its way as a
// message, since the switch asks and the members answer; a store that goes to all as well.
double node_latency(const GroupSites& group, const Fabric& fabric) {
  double latency = 0;
  for (const auto& node : group.nodes) {
    const auto device = [&](std::size_t i) { return group.members[node[i]].device; };
    if (node.size() > 1) latency = std::max(latency, fabric.latency(device(0), device(1)).seconds());
  }
  return latency;
}

// Up to the highest switch that joins the members of a rail, and down from it.
double network_latency(const GroupSites& group, const Fabric& fabric) {
  const auto first = [&](std::size_t node) { return group.members[group.nodes[node].front()].device; };
  double latency = 0;
  for (std::size_t node = 1; node < group.nodes.size(); ++node)
    latency = std::max(latency, fabric.latency(first(0), first(node)).seconds());
  return latency;
}

// Of the k-th that each member holds of a buffer reduced inside its node, or is to gather.
Traffic between_nodes(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  const auto k = static_cast<double>(std::max(1, group.per_node()));
  const auto nodes = static_cast<double>(group.nodes.size());
  const double all = query.bytes / k;
  if (!query.in_network || !fabric.spec().reduces)
    return rings_between_nodes(all, query.kind == OpKind::kAllReduce, group, fabric);
  const Share share = query.kind == OpKind::kAllReduce       ? Share{all, all}
                      : query.kind == OpKind::kReduceScatter ? Share{all, all / nodes}
                                                             : Share{all / nodes, all};
  return through(kNetworkSwitch, share, network_latency(group, fabric), group);
}

}  // namespace

Steps in_switch_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  const double k = group.per_node();
  const bool several = group.nodes.size() > 1;
  const double latency = node_latency(group, fabric);
  const Traffic scatter = through(kNodeSwitch, {query.bytes, query.bytes / k}, latency, group);
  const Traffic gather = through(kNodeSwitch, {query.bytes / k, query.bytes}, latency, group);
  if (!several && query.kind == OpKind::kAllReduce) {  // both at once, chunk by chunk
    const double passed = query.bytes * (1 + 1 / k);
    return {through(kNodeSwitch, {passed, passed}, 2 * latency, group)};
  }
  Steps steps;
  if (k > 1 && query.kind != OpKind::kAllGather) steps.push_back(scatter);
  if (several) steps.push_back(between_nodes(query, group, fabric));
  if (k > 1 && query.kind != OpKind::kReduceScatter) steps.push_back(gather);
  return steps;
}

}  // namespace moebius
