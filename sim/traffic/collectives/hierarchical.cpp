#include <algorithm>
#include <utility>

#include "sim/traffic/collectives/families.h"
#include "sim/traffic/collectives/rails.h"
#include "sim/traffic/island_traffic.h"

namespace moebius {
namespace {

constexpr std::size_t kFewNodes = 32;  // nodes whose pairs are listed one by one

// Member c of a node takes what its neighbours have for members c of the other nodes.
struct HierarchicalExchange {
  Traffic inside, between;

  void add_member(std::size_t a, std::size_t c, double bytes, const GroupSites& group) {
    const auto& own = group.nodes[a];
    const auto k = static_cast<double>(own.size()), nodes = static_cast<double>(group.nodes.size());
    for (std::size_t d = 0; d < own.size(); ++d) {
      if (d != c) inside.edges.push_back({own[c], own[d], bytes / k});
    }
    for (std::size_t b = 0; b < group.nodes.size() && group.nodes.size() <= kFewNodes; ++b) {
      if (b != a) between.edges.push_back({own[c], group.nodes[b][c], bytes / nodes, 1});
    }
  }
};

// Between many nodes: the same as above, one mesh for each rail.
Traffic rail_meshes(double bytes, const GroupSites& group, const Fabric& fabric) {
  Traffic all;
  for (std::size_t c = 0; c < group.nodes.front().size(); ++c) {
    Mesh mesh{{}, bytes / static_cast<double>(group.nodes.size()), {}};
    for (const auto& node : group.nodes) mesh.members.push_back(node[c]);
    mesh.messages.assign(mesh.members.size(), 1);
    const Traffic rail = mesh_traffic(std::move(mesh), group, fabric, RailChange::kInNode);
    all.latency = std::max(all.latency, rail.latency);
    all.meshes.push_back(rail.meshes.front());
  }
  return all;
}

Steps all_to_all(double bytes, const GroupSites& group, const Fabric& fabric) {
  HierarchicalExchange exchange;
  for (std::size_t a = 0; a < group.nodes.size(); ++a) {
    for (std::size_t c = 0; c < group.nodes[a].size(); ++c) exchange.add_member(a, c, bytes, group);
  }
  exchange.inside.latency = largest_latency(exchange.inside.edges, group, fabric);
  if (group.nodes.size() > kFewNodes) {
    exchange.between = rail_meshes(bytes, group, fabric);
  } else {
    exchange.between.latency = largest_latency(exchange.between.edges, group, fabric);
  }
  return {exchange.inside, exchange.between};
}

// Whether each two members of a node have a link of their own: a ring would leave all but one of them idle.
bool in_full_mesh(const GroupSites& group, const Fabric& fabric) {
  const auto& node = group.nodes.front();
  std::vector<WireId> wires;
  fabric.route(group.members[node[0]].device, group.members[node[1]].device, wires);
  return wires.front().kind == WireKind::kScaleUpPair;
}

// Everyone's part to everyone in the node at once.
Traffic meshes_in_nodes(double bytes, const GroupSites& group, const Fabric& fabric) {
  Traffic all;
  for (const auto& node : group.nodes) {
    const double part = bytes / static_cast<double>(node.size());
    for (const std::int32_t from : node)
      for (const std::int32_t to : node)
        if (from != to) all.edges.push_back({from, to, part});
  }
  all.latency = largest_latency(all.edges, group, fabric);
  return all;
}

Steps reduction(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  const double k = group.per_node();
  const Traffic inside = in_full_mesh(group, fabric) ? meshes_in_nodes(query.bytes, group, fabric)
                                                     : rings_in_nodes(query.bytes, group, fabric);
  if (query.kind == OpKind::kAllReduce)
    return {inside, rings_between_nodes(query.bytes / k, true, group, fabric), inside};
  const Traffic between = rings_between_nodes(query.bytes / k, false, group, fabric);
  if (query.kind == OpKind::kReduceScatter) return {inside, between};
  return {between, inside};
}

}  // namespace

Steps hierarchical_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  const bool exchange = query.kind == OpKind::kAllToAll;
  if (!exchange && group.islands.size() > 1) return island_traffic(query, group, fabric);
  if (!has_hierarchy(group) || query.matrix != nullptr)
    return exchange ? direct_steps(query, group, fabric) : ring_steps(query, group, fabric);
  return exchange ? all_to_all(query.bytes, group, fabric) : reduction(query, group, fabric);
}

}  // namespace moebius
