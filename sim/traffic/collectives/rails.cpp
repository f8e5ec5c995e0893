#include "sim/traffic/collectives/rails.h"

#include <algorithm>

#include "sim/traffic/collectives.h"

namespace moebius {

Rails rails_of(const GroupSites& group) {
  const int k = group.per_node();
  if (group.nodes.size() > 1 && k > 0) return {group.nodes, k};
  Rails rails;
  for (const auto& node : group.nodes) {
    for (const std::int32_t member : node) rails.stops.push_back({member});
  }
  return rails;
}

void start_at_root(Rails& rails) {
  const auto has_root = [](const auto& stop) { return std::find(stop.begin(), stop.end(), 0) != stop.end(); };
  std::rotate(rails.stops.begin(), std::find_if(rails.stops.begin(), rails.stops.end(), has_root),
              rails.stops.end());
}

bool has_hierarchy(const GroupSites& group) {
  return group.nodes.size() > 1 && group.per_node() > 1;
}

void add_inside_edges(const Rails& rails, double bytes, std::vector<Edge>& edges) {
  if (rails.k == 1) return;
  for (const auto& stop : rails.stops) {
    for (int c = 0; c < rails.k; ++c)
      edges.push_back({stop[c], stop[(c + 1) % rails.k], bytes * (rails.k - 1) / rails.k});
  }
}

std::vector<Edge> ring_edges(const Rails& rails, double bytes, bool closed) {
  std::vector<Edge> edges;
  add_inside_edges(rails, bytes, edges);
  const int stops = rails.size();
  for (int j = 0; j < (closed ? stops : stops - 1); ++j) {
    for (int c = 0; c < rails.k; ++c) {
      edges.push_back({rails.stops[j][c], rails.stops[(j + 1) % stops][c], bytes / rails.k});
    }
  }
  return edges;
}

double largest_latency(const std::vector<Edge>& edges, const GroupSites& group, const Fabric& fabric,
                       RailChange change) {
  double latency = 0;
  for (const Edge& edge : edges) {
    const int from = group.members[edge.from].device, to = group.members[edge.to].device;
    latency = std::max(latency, fabric.latency(from, to, change).seconds());
  }
  return latency;
}

double mean_latency(const std::vector<Edge>& edges, const GroupSites& group, const Fabric& fabric) {
  double sum = 0, weight = 0;
  for (const Edge& edge : edges) {
    const int from = group.members[edge.from].device, to = group.members[edge.to].device;
    sum += edge.bytes * fabric.latency(from, to).seconds();
    weight += edge.bytes;
  }
  return weight > 0 ? sum / weight : 0;
}

double ring_hop_latency(const GroupSites& group, const Fabric& fabric) {
  return mean_latency(ring_edges(rails_of(group), 1, true), group, fabric);
}

Traffic message_traffic(int from, int to, double bytes, const GroupSites& group, const Fabric& fabric) {
  Traffic traffic{.edges = {{from, to, bytes}}, .lockstep = true, .own_message = true};
  traffic.latency = largest_latency(traffic.edges, group, fabric);
  return traffic;
}

}  // namespace moebius
