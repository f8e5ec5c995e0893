#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/traffic/collectives.h"

namespace moebius {
namespace {

// Tokens handed on or delivered directly inside the nodes, and those that cross to another node of the route.
struct Hops {
  std::vector<Edge> inside, across;
};

// `gate` takes in what `source` sends to node `node` and hands on what is not for itself.
void add_node_edges(const Route& route, int source, int node, Hops& hops) {
  const int home = route.node_of(source);
  const int first = route.first_of_node(node), last = route.end_of_node(node);
  const int gate = first + (source - route.first_of_node(home)) % (last - first);
  const bool own = home == node;
  if (!own && route.tokens_to_node(source, node) > 0) {
    hops.across.push_back({source, gate, static_cast<double>(route.tokens_to_node(source, node))});
  }
  const int hub = own ? source : gate;
  for (int to = first; to < last; ++to) {
    const int tokens = route.tokens_between(source, to);
    if (to != hub && tokens > 0) hops.inside.push_back({hub, to, static_cast<double>(tokens)});
  }
}

// Most edges join the same members as others: each pair is looked at once.
double largest_latency(const std::vector<Edge>& edges, const GroupSites& group, const Fabric& fabric) {
  const std::size_t size = group.members.size();
  std::vector<bool> seen(size * size);
  double latency = 0;
  for (const Edge& edge : edges) {
    const auto pair = static_cast<std::size_t>(edge.from) * size + static_cast<std::size_t>(edge.to);
    if (seen[pair]) continue;
    seen[pair] = true;
    const int from = group.members[edge.from].device, to = group.members[edge.to].device;
    latency = std::max(latency, fabric.latency(from, to).seconds());
  }
  return latency;
}

}  // namespace

Traffic route_traffic(const Route& route, bool combine, double row_bytes, const GroupSites& group,
                      const Fabric& fabric) {
  CHECK(route.spec().ranks == group.size(),
        fmt::format("route of {} ranks, group of {}", route.spec().ranks, group.size()));
  Hops hops;
  for (int source = 0; source < group.size(); ++source) {
    for (int node = 0; node < route.nodes(); ++node) add_node_edges(route, source, node, hops);
  }
  Traffic traffic;
  traffic.latency = largest_latency(hops.across, group, fabric) + largest_latency(hops.inside, group, fabric);
  traffic.edges = std::move(hops.across);
  traffic.edges.insert(traffic.edges.end(), hops.inside.begin(), hops.inside.end());
  for (Edge& edge : traffic.edges) {
    edge.bytes *= row_bytes;
    if (combine) std::swap(edge.from, edge.to);
  }
  return traffic;
}

}  // namespace moebius
