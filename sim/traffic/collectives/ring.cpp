#include <algorithm>

#include "sim/traffic/collectives/families.h"
#include "sim/traffic/collectives/rails.h"

namespace moebius {
namespace {

// `hops` equal steps around the ring, each of bytes/n, as one step that carries what they carry together.
Traffic ring(const Rails& rails, double bytes, int hops, const GroupSites& group, const Fabric& fabric) {
  const auto n = static_cast<double>(rails.members());
  Traffic traffic{ring_edges(rails, bytes * hops / n, true), 0, true};
  traffic.latency = hops * mean_latency(traffic.edges, group, fabric);
  traffic.rounds = hops;
  return traffic;
}

Traffic pipeline(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  Rails rails = rails_of(group);
  start_at_root(rails);
  Traffic traffic{ring_edges(rails, query.bytes, false), 0, true};
  traffic.hops = group.size() - 1;
  traffic.latency = traffic.hops * mean_latency(traffic.edges, group, fabric);
  traffic.depth = traffic.hops;
  return traffic;
}

Traffic rounds(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  CollectiveQuery at_once = query;
  at_once.algorithm = Algorithm::kDirect;
  Traffic traffic = direct_steps(at_once, group, fabric).front();
  double mean = mean_latency(traffic.edges, group, fabric);
  for (const Mesh& mesh : traffic.meshes) mean = mean_mesh_latency(mesh, group, fabric);
  traffic.latency = (group.size() - 1) * mean;
  return traffic;
}

}  // namespace

Steps ring_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  if (query.kind == OpKind::kAllToAll) return {rounds(query, group, fabric)};
  if (query.kind == OpKind::kBroadcast) return {pipeline(query, group, fabric)};
  const int passes = query.kind == OpKind::kAllReduce ? 2 : 1;  // a reduce-scatter and an all-gather
  return {ring(rails_of(group), query.bytes, passes * (group.size() - 1), group, fabric)};
}

// The same traffic for each node, side by side.
Traffic rings_in_nodes(double bytes, const GroupSites& group, const Fabric& fabric) {
  Traffic all{{}, 0, true};
  for (const auto& node : group.nodes) {
    Rails rails;
    for (const std::int32_t member : node) rails.stops.push_back({member});
    const Traffic part = ring(rails, bytes, rails.size() - 1, group, fabric);
    all.edges.insert(all.edges.end(), part.edges.begin(), part.edges.end());
    all.latency = std::max(all.latency, part.latency);
    all.rounds = std::max(all.rounds, part.rounds);
  }
  return all;
}

// Member c of a node with members c of the others.
Traffic rings_between_nodes(double bytes, bool twice, const GroupSites& group, const Fabric& fabric) {
  Traffic traffic{{}, 0, true};
  const std::size_t nodes = group.nodes.size();
  const double hops = static_cast<double>(nodes - 1) * (twice ? 2 : 1);
  for (std::size_t j = 0; j < nodes; ++j) {
    for (std::size_t c = 0; c < group.nodes[j].size(); ++c) {
      traffic.edges.push_back(
          {group.nodes[j][c], group.nodes[(j + 1) % nodes][c], bytes * hops / static_cast<double>(nodes)});
    }
  }
  traffic.latency = hops * mean_latency(traffic.edges, group, fabric);
  traffic.rounds = hops;
  return traffic;
}

}  // namespace moebius
