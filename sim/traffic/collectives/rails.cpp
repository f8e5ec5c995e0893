#include "sim/traffic/collectives/rails.h"

#include <algorithm>

#include "sim/traffic/collectives.h"

namespace moebius {

int Rails::members() const {
  std::size_t sum = 0;
  for (const auto& stop : stops) sum += stop.size();
  return static_cast<int>(sum);
}

int Rails::most_at_a_stop() const {
  std::size_t most = 0;
  for (const auto& stop : stops) most = std::max(most, stop.size());
  return static_cast<int>(most);
}

Rails rails_of(const GroupSites& group) {
  if (group.nodes.size() > 1) {
    const auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
    const auto least = std::min_element(group.nodes.begin(), group.nodes.end(), smaller);
    return {group.nodes, static_cast<int>(least->size())};
  }
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
  const int passing = rails.most_at_a_stop() > rails.k ? rails.k : rails.k - 1;
  for (const auto& stop : rails.stops) {
    const std::size_t size = stop.size();
    for (std::size_t i = 0; i < size && size > 1; ++i)
      edges.push_back({stop[i], stop[(i + 1) % size], bytes * passing / rails.k});
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
