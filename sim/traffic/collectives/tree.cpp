#include <bit>

#include "sim/traffic/collectives/families.h"
#include "sim/traffic/collectives/rails.h"

namespace moebius {
namespace {

// The in-order binary tree over places 1 .. n: a place with h zero bits at its end stands h above the leaves,
// so that the odd ones are leaves, and hangs on the nearest place that stands higher and exists; 0: the root.
// Neighbours in the tree are near each other in the order of nodes.
int parent_of(int place, int n) {
  int above = place;
  for (int bit = place & -place; bit <= n; bit *= 2) {
    above = (above & ~bit) | bit * 2;
    if (above <= n) return above;
  }
  return 0;
}

struct TreeSpec {
  double up = 0, down = 0;  // bytes over each rail's edge
  int shift = 0;            // stop j stands at place j + 1 + shift, around
};

// Shifted by one place, every leaf but one becomes a stop that passes on, and the other way round.
void add_tree_edges(const Rails& rails, const TreeSpec& spec, std::vector<Edge>& edges) {
  const int stops = rails.size();
  const auto stop_at = [&](int place) { return (place - 1 - spec.shift + stops) % stops; };
  for (int place = 1; place <= stops; ++place) {
    const int above = parent_of(place, stops);
    if (above == 0) continue;
    const auto &child = rails.stops[stop_at(place)], &parent = rails.stops[stop_at(above)];
    for (int c = 0; c < rails.k; ++c) {
      if (spec.up > 0) edges.push_back({child[c], parent[c], spec.up});
      edges.push_back({parent[c], child[c], spec.down});
    }
  }
}

// A broadcast's root must stand at the top: the stops go around until it does.
int shift_to_top(int stops) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(stops))) - 1;
}

}  // namespace

Steps tree_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  Rails rails = rails_of(group);
  const bool reduce = query.kind == OpKind::kAllReduce;
  if (!reduce) start_at_root(rails);
  Traffic traffic;
  const double rail = query.bytes / rails.k;
  if (reduce) {
    add_tree_edges(rails, {rail / 2, rail / 2, 0}, traffic.edges);
    add_tree_edges(rails, {rail / 2, rail / 2, 1}, traffic.edges);
  } else {
    add_tree_edges(rails, {0, rail, shift_to_top(rails.size())}, traffic.edges);
  }
  const int depth = std::bit_width(static_cast<unsigned>(rails.size())) - 1;
  traffic.latency = depth * largest_latency(traffic.edges, group, fabric);
  std::vector<Edge> inside;
  add_inside_edges(rails, reduce ? 2 * query.bytes : query.bytes, inside);
  const int chain = rails.most_at_a_stop() - 1;
  traffic.latency += chain * largest_latency(inside, group, fabric);
  traffic.hops = depth + chain;
  traffic.depth = reduce ? 2 * depth : depth;
  if (reduce) traffic.latency *= 2, traffic.hops *= 2;
  traffic.edges.insert(traffic.edges.end(), inside.begin(), inside.end());
  return {traffic};
}

}  // namespace moebius
