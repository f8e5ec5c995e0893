#include "sim/traffic/collectives.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/traffic/island_traffic.h"

namespace moebius {
namespace {

// A group as k parallel rings or trees over `stops`: stops[j][c] is the member of ring c at stop j.
struct Rails {
  std::vector<std::vector<std::int32_t>> stops;
  int k = 1;
};

// Nodes are the stops where all hold as many members; otherwise every member is a stop of one ring, node
// after node.
Rails rails_of(const GroupSites& group) {
  const int k = group.per_node();
  if (group.nodes.size() > 1 && k > 0) return {group.nodes, k};
  Rails rails;
  for (const auto& node : group.nodes) {
    for (const std::int32_t member : node) rails.stops.push_back({member});
  }
  return rails;
}

// The stop of the root first, as broadcasts begin there.
void start_at_root(Rails& rails) {
  const auto has_root = [](const auto& stop) { return std::find(stop.begin(), stop.end(), 0) != stop.end(); };
  std::rotate(rails.stops.begin(), std::find_if(rails.stops.begin(), rails.stops.end(), has_root),
              rails.stops.end());
}

double latency_of(const Edge& edge, const GroupSites& group, const Fabric& fabric) {
  return fabric.latency(group.members[edge.from].device, group.members[edge.to].device).seconds();
}

double largest_latency(const std::vector<Edge>& edges, const GroupSites& group, const Fabric& fabric) {
  double latency = 0;
  for (const Edge& edge : edges) latency = std::max(latency, latency_of(edge, group, fabric));
  return latency;
}

// Inside a stop, around: what the k rings pass through each member on their way.
void add_inside_edges(const Rails& rails, double bytes, std::vector<Edge>& edges) {
  if (rails.k == 1) return;
  for (const auto& stop : rails.stops) {
    for (int c = 0; c < rails.k; ++c)
      edges.push_back({stop[c], stop[(c + 1) % rails.k], bytes * (rails.k - 1) / rails.k});
  }
}

// The edges of a ring that passes `bytes` over each hop. Open: without the hop that closes it.
std::vector<Edge> ring_edges(const Rails& rails, double bytes, bool closed) {
  std::vector<Edge> edges;
  add_inside_edges(rails, bytes, edges);
  const std::size_t stops = rails.stops.size();
  for (std::size_t j = 0; j < (closed ? stops : stops - 1); ++j) {
    for (int c = 0; c < rails.k; ++c) {
      edges.push_back({rails.stops[j][c], rails.stops[(j + 1) % stops][c], bytes / rails.k});
    }
  }
  return edges;
}

// A message waits at each hop for that hop's own latency; averaged by how often the rings take it.
double mean_latency(const std::vector<Edge>& edges, const GroupSites& group, const Fabric& fabric) {
  double sum = 0, weight = 0;
  for (const Edge& edge : edges) {
    sum += edge.bytes * latency_of(edge, group, fabric);
    weight += edge.bytes;
  }
  return weight > 0 ? sum / weight : 0;
}

// `hops` equal steps around the ring, each of bytes/n, as one step that carries what they carry together.
Traffic ring(const Rails& rails, double bytes, int hops, const GroupSites& group, const Fabric& fabric) {
  const auto n = static_cast<double>(rails.stops.size()) * rails.k;
  Traffic traffic{ring_edges(rails, bytes * hops / n, true), 0, true};
  traffic.latency = hops * mean_latency(traffic.edges, group, fabric);
  traffic.rounds = hops;
  return traffic;
}

// A pipeline of chunks from the root to the last member: the last chunk leaves after the others and takes all
// hops.
Traffic pipeline(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  Rails rails = rails_of(group);
  start_at_root(rails);
  const double steps = query.chunks + group.size() - 2;
  Traffic traffic{ring_edges(rails, query.bytes * steps / query.chunks, false), 0, true};
  traffic.latency = steps * mean_latency(traffic.edges, group, fabric);
  traffic.rounds = steps;
  return traffic;
}

// Parents and children of a binary tree over the stops, stop 0 the root; `mirrored`: with the stops in
// reverse, so that the leaves of one tree are the inner stops of the other.
struct TreeSpec {
  double up = 0, down = 0;  // bytes over each rail's edge
  bool mirrored = false;
};

void add_tree_edges(const Rails& rails, const TreeSpec& spec, std::vector<Edge>& edges) {
  const int stops = static_cast<int>(rails.stops.size());
  for (int child = 1; child < stops; ++child) {
    const int at = spec.mirrored ? stops - 1 - child : child;
    const int above = spec.mirrored ? stops - 1 - (child - 1) / 2 : (child - 1) / 2;
    for (int c = 0; c < rails.k; ++c) {
      if (spec.up > 0) edges.push_back({rails.stops[at][c], rails.stops[above][c], spec.up});
      edges.push_back({rails.stops[above][c], rails.stops[at][c], spec.down});
    }
  }
}

// All-reduce: up and down two trees that carry half each. Broadcast: down one tree.
Traffic tree(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  Rails rails = rails_of(group);
  const bool reduce = query.kind == OpKind::kAllReduce;
  if (!reduce) start_at_root(rails);
  Traffic traffic;
  const double rail = query.bytes / rails.k;
  if (reduce) {
    add_tree_edges(rails, {rail / 2, rail / 2, false}, traffic.edges);
    add_tree_edges(rails, {rail / 2, rail / 2, true}, traffic.edges);
  } else {
    add_tree_edges(rails, {0, rail, false}, traffic.edges);
  }
  const int depth = std::bit_width(rails.stops.size()) - 1;
  traffic.latency = depth * largest_latency(traffic.edges, group, fabric);
  std::vector<Edge> inside;
  add_inside_edges(rails, reduce ? 2 * query.bytes : query.bytes, inside);
  traffic.latency += (rails.k - 1) * largest_latency(inside, group, fabric);
  traffic.depth = reduce ? 2 * depth : depth;
  if (reduce) traffic.latency *= 2;
  traffic.edges.insert(traffic.edges.end(), inside.begin(), inside.end());
  return traffic;
}

// Marks the members whose node is the first one in which some class stands.
std::vector<bool> in_first_nodes(const GroupSites& group) {
  std::vector<bool> marked(group.size(), false);
  std::vector<std::int32_t> seen;
  for (const auto& node : group.nodes) {
    bool is_first = false;
    for (const std::int32_t member : node) {
      const std::int32_t rank_class = group.members[member].rank_class;
      if (std::find(seen.begin(), seen.end(), rank_class) != seen.end()) continue;
      seen.push_back(rank_class);
      is_first = true;
    }
    for (const std::int32_t member : node) marked[member] = is_first;
  }
  return marked;
}

// Every member to every other, all at once.
Traffic direct(const CollectiveQuery& query, double bytes, const GroupSites& group, const Fabric& fabric) {
  Traffic traffic;
  const int n = group.size();
  const std::vector<bool> counts =
      query.only_first_nodes ? in_first_nodes(group) : std::vector<bool>(n, true);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (i != j && (counts[i] || counts[j])) traffic.edges.push_back({i, j, bytes});
    }
  }
  traffic.latency = largest_latency(traffic.edges, group, fabric);
  return traffic;
}

// In-node steps run in all nodes at once: the same traffic for each node, side by side.
Traffic rings_in_nodes(double bytes, const GroupSites& group, const Fabric& fabric) {
  Traffic all{{}, 0, true};
  for (const auto& node : group.nodes) {
    Rails rails;
    for (const std::int32_t member : node) rails.stops.push_back({member});
    const Traffic part = ring(rails, bytes, static_cast<int>(rails.stops.size()) - 1, group, fabric);
    all.edges.insert(all.edges.end(), part.edges.begin(), part.edges.end());
    all.latency = std::max(all.latency, part.latency);
    all.rounds = std::max(all.rounds, part.rounds);
  }
  return all;
}

// Between nodes, member c of a node with members c of the others: one ring for each rail.
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

// First inside the nodes, so that a member keeps a k-th, then between them on every rail, then inside again.
std::vector<Traffic> hierarchical(const CollectiveQuery& query, const GroupSites& group,
                                  const Fabric& fabric) {
  const double k = group.per_node();
  const Traffic inside = rings_in_nodes(query.bytes, group, fabric);
  if (query.kind == OpKind::kAllReduce)
    return {inside, rings_between_nodes(query.bytes / k, true, group, fabric), inside};
  const Traffic between = rings_between_nodes(query.bytes / k, false, group, fabric);
  if (query.kind == OpKind::kReduceScatter) return {inside, between};
  return {between, inside};
}

// Messages for one rail meet in the node first, and cross the network together.
std::vector<Traffic> hierarchical_all_to_all(double bytes, const GroupSites& group, const Fabric& fabric) {
  Traffic inside, between;
  const auto k = static_cast<double>(group.per_node()), nodes = static_cast<double>(group.nodes.size());
  for (std::size_t a = 0; a < group.nodes.size(); ++a) {
    for (std::size_t c = 0; c < group.nodes[a].size(); ++c) {
      for (std::size_t d = 0; d < group.nodes[a].size(); ++d) {
        if (d != c) inside.edges.push_back({group.nodes[a][c], group.nodes[a][d], bytes / k});
      }
      for (std::size_t b = 0; b < group.nodes.size(); ++b) {
        if (b != a) between.edges.push_back({group.nodes[a][c], group.nodes[b][c], bytes / nodes});
      }
    }
  }
  inside.latency = largest_latency(inside.edges, group, fabric);
  between.latency = largest_latency(between.edges, group, fabric);
  return {inside, between};
}

bool has_hierarchy(const GroupSites& group) {
  return group.nodes.size() > 1 && group.per_node() > 1;
}

Error no_such_algorithm(const CollectiveQuery& query) {
  return input_error(
      fmt::format("{} has no algorithm \"{}\"", to_string(query.kind), to_string(query.algorithm)));
}

std::vector<Traffic> all_to_all(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  const int n = group.size();
  switch (query.algorithm) {
    case Algorithm::kHierarchical:
      if (has_hierarchy(group)) return hierarchical_all_to_all(query.bytes, group, fabric);
      [[fallthrough]];
    case Algorithm::kAuto:
    case Algorithm::kDirect:
      return {direct(query, query.bytes / n, group, fabric)};
    case Algorithm::kRing: {  // in n - 1 rounds, in round s to the member s places on
      Traffic rounds = direct(query, query.bytes / n, group, fabric);
      rounds.latency = (n - 1) * mean_latency(rounds.edges, group, fabric);
      return {rounds};
    }
    case Algorithm::kTree:
      throw no_such_algorithm(query);
  }
  return {};
}

std::vector<Traffic> reduction(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  const int n = group.size();
  const bool both = query.kind == OpKind::kAllReduce;  // a reduce-scatter and an all-gather
  switch (query.algorithm) {
    case Algorithm::kTree:
      if (!both) throw no_such_algorithm(query);
      return {tree(query, group, fabric)};
    case Algorithm::kDirect: {
      const Traffic half = direct(query, query.bytes / n, group, fabric);
      return both ? std::vector<Traffic>{half, half} : std::vector<Traffic>{half};
    }
    case Algorithm::kHierarchical:
      if (group.islands.size() > 1) return island_traffic(query, group, fabric);
      if (has_hierarchy(group)) return hierarchical(query, group, fabric);
      [[fallthrough]];
    case Algorithm::kAuto:
    case Algorithm::kRing:
      return {ring(rails_of(group), query.bytes, (both ? 2 : 1) * (n - 1), group, fabric)};
  }
  return {};
}

std::vector<Traffic> broadcast(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  switch (query.algorithm) {
    case Algorithm::kDirect:
    case Algorithm::kHierarchical:
      throw no_such_algorithm(query);
    case Algorithm::kTree:
      return {tree(query, group, fabric)};
    case Algorithm::kAuto:
    case Algorithm::kRing:
      return {pipeline(query, group, fabric)};
  }
  return {};
}

}  // namespace

std::vector<Algorithm> automatic_choices(OpKind kind, const GroupSites& group) {
  if (kind == OpKind::kAllToAll) return {Algorithm::kDirect};
  if (kind == OpKind::kBroadcast) return {Algorithm::kRing, Algorithm::kTree};
  std::vector<Algorithm> choices = {Algorithm::kRing};
  if (kind == OpKind::kAllReduce) choices.push_back(Algorithm::kTree);
  if (group.nodes.size() == 1) choices.push_back(Algorithm::kDirect);
  if (has_hierarchy(group) || group.islands.size() > 1) choices.push_back(Algorithm::kHierarchical);
  return choices;
}

std::vector<Traffic> collective_traffic(const CollectiveQuery& query, const GroupSites& group,
                                        const Fabric& fabric) {
  CHECK(query.algorithm != Algorithm::kAuto, "the algorithm is chosen by modelled cost before");
  if (group.size() < 2) return {};
  if (query.kind == OpKind::kAllToAll) return all_to_all(query, group, fabric);
  if (query.kind == OpKind::kBroadcast) return broadcast(query, group, fabric);
  return reduction(query, group, fabric);
}

double ring_hop_latency(const GroupSites& group, const Fabric& fabric) {
  return mean_latency(ring_edges(rails_of(group), 1, true), group, fabric);
}

Traffic message_traffic(int from, int to, double bytes, const GroupSites& group, const Fabric& fabric) {
  Traffic traffic{{{from, to, bytes}}, 0, true};
  traffic.latency = largest_latency(traffic.edges, group, fabric);
  return traffic;
}

}  // namespace moebius
