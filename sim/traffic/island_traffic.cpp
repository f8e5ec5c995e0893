#include "sim/traffic/island_traffic.h"

#include <algorithm>

namespace moebius {
namespace {

using Members = std::vector<std::int32_t>;

// Some members as a group of their own; member i of it is members[i] of the whole.
GroupSites alone(const Members& members, const GroupSites& group) {
  GroupSites sites;
  for (const std::int32_t member : members) sites.members.push_back(group.members[member]);
  for (const auto& node : group.nodes) {
    Members here;
    for (const std::int32_t member : node) {
      const auto found = std::find(members.begin(), members.end(), member);
      if (found != members.end()) here.push_back(static_cast<std::int32_t>(found - members.begin()));
    }
    if (!here.empty()) sites.nodes.push_back(std::move(here));
  }
  return sites;
}

// An island as the groups that work side by side inside it: its nodes, and then each rail over the nodes with
// what the members of a node hold. Where nodes do not hold equally many members, all of them in one ring.
struct Island {
  std::vector<Members> nodes, rails;
  double rail_share = 1;  // of the buffer
  Members by_share;       // member i holds the i-th part in the end
};

Island island_of(const Members& members, const GroupSites& group) {
  const GroupSites sites = alone(members, group);
  Island island;
  const auto k = static_cast<std::size_t>(sites.per_node());
  if (k == 0) return {{}, {members}, 1, members};
  for (const auto& node : sites.nodes) {
    Members& here = island.nodes.emplace_back();
    for (const std::int32_t member : node) here.push_back(members[member]);
  }
  for (std::size_t c = 0; c < k; ++c) {
    Members& rail = island.rails.emplace_back();
    for (const Members& node : island.nodes) rail.push_back(node[c]);
    island.by_share.insert(island.by_share.end(), rail.begin(), rail.end());
  }
  island.rail_share = 1 / static_cast<double>(k);
  return island;
}

// All links of a full mesh work only when everyone sends to everyone.
Algorithm algorithm_of(const GroupSites& sites, const Fabric& fabric) {
  if (sites.nodes.size() > 1) return Algorithm::kRing;
  std::vector<WireId> wires;
  fabric.route(sites.members[0].device, sites.members[1].device, wires);
  return wires.front().kind == WireKind::kScaleUpPair ? Algorithm::kDirect : Algorithm::kRing;
}

// Adds the collective of one group to a step in which many go on side by side, in lockstep: the edges of a
// mesh one by one.
void add_beside(const CollectiveQuery& query, const Members& members, const GroupSites& group,
                const Fabric& fabric, Traffic& step) {
  if (members.size() < 2) return;
  const GroupSites sites = alone(members, group);
  for (const Traffic& part :
       collective_traffic({query.kind, algorithm_of(sites, fabric), query.bytes}, sites, fabric)) {
    for (const Edge& edge : listed(part).edges)
      step.edges.push_back({members[edge.from], members[edge.to], edge.bytes});
    step.latency = std::max(step.latency, part.latency);
    step.rounds = std::max(step.rounds, part.rounds);
  }
}

// In all islands at once.
std::vector<Traffic> inside(const CollectiveQuery& query, const std::vector<Island>& islands,
                            const GroupSites& group, const Fabric& fabric) {
  Traffic nodes;
  nodes.lockstep = true;
  Traffic rails = nodes;
  for (const Island& island : islands) {
    for (const Members& node : island.nodes) add_beside(query, node, group, fabric, nodes);
    const CollectiveQuery of_rail{query.kind, query.algorithm, query.bytes * island.rail_share};
    for (const Members& rail : island.rails) add_beside(of_rail, rail, group, fabric, rails);
  }
  if (query.kind == OpKind::kReduceScatter) return {nodes, rails};
  return {rails, nodes};
}

// Member i of n holds the bytes from i/n to (i + 1)/n.
double overlap(std::size_t i, std::size_t n, std::size_t j, std::size_t m) {
  const double begin = std::max(static_cast<double>(i) / n, static_cast<double>(j) / m);
  const double end = std::min(static_cast<double>(i + 1) / n, static_cast<double>(j + 1) / m);
  return std::max(0.0, end - begin);
}

// What goes from an island to the next one, of the whole buffer. A reduce-scatter carries there all that the
// island itself will not keep, an all-gather all that the next one does not have.
double share_of_hop(OpKind kind, std::size_t hop, const GroupSites& group) {
  const auto islands = static_cast<double>(group.islands.size());
  const auto kept = [&](std::size_t island) {
    return static_cast<double>(group.islands[island % group.islands.size()].size()) / group.size();
  };
  if (kind == OpKind::kAllReduce) return 2 * (islands - 1) / islands;
  return 1 - kept(kind == OpKind::kReduceScatter ? hop : hop + 1);
}

Traffic around_islands(const CollectiveQuery& query, const std::vector<Island>& islands,
                       const GroupSites& group, const Fabric& fabric) {
  Traffic traffic;
  traffic.lockstep = true;
  traffic.rounds = static_cast<double>(islands.size() - 1) * (query.kind == OpKind::kAllReduce ? 2 : 1);
  double latency = 0;
  for (std::size_t p = 0; p < islands.size(); ++p) {
    const Members &from = islands[p].by_share, &to = islands[(p + 1) % islands.size()].by_share;
    const double bytes = query.bytes * share_of_hop(query.kind, p, group);
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (std::size_t j = i * to.size() / from.size(); j < to.size(); ++j) {
        const double share = overlap(i, from.size(), j, to.size());
        if (share <= 1e-12) break;
        const int sender = group.members[from[i]].device, receiver = group.members[to[j]].device;
        traffic.edges.push_back({from[i], to[j], bytes * share});
        latency = std::max(latency, fabric.latency(sender, receiver).seconds());
      }
    }
  }
  traffic.latency = traffic.rounds * latency;
  return traffic;
}

}  // namespace

std::vector<Traffic> island_traffic(const CollectiveQuery& query, const GroupSites& group,
                                    const Fabric& fabric) {
  std::vector<Island> islands;
  for (const Members& members : group.islands) islands.push_back(island_of(members, group));
  const auto in_islands = [&](OpKind kind) {
    return inside({kind, query.algorithm, query.bytes}, islands, group, fabric);
  };
  std::vector<Traffic> steps;
  if (query.kind != OpKind::kAllGather) steps = in_islands(OpKind::kReduceScatter);
  steps.push_back(around_islands(query, islands, group, fabric));
  if (query.kind == OpKind::kReduceScatter) return steps;
  const std::vector<Traffic> gather = in_islands(OpKind::kAllGather);
  steps.insert(steps.end(), gather.begin(), gather.end());
  return steps;
}

}  // namespace moebius
