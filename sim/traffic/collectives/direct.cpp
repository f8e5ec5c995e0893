#include <algorithm>
#include <utility>

#include "sim/traffic/collectives/families.h"
#include "sim/traffic/collectives/rails.h"

namespace moebius {
namespace {

// Marks the members whose node is the first one of its size in which some class stands: in a smaller one a
// member sends more to other nodes.
std::vector<bool> in_first_nodes(const GroupSites& group) {
  std::vector<bool> marked(group.size(), false);
  std::vector<std::pair<std::int32_t, std::size_t>> seen;
  for (const auto& node : group.nodes) {
    bool is_first = false;
    for (const std::int32_t member : node) {
      const std::pair key(group.members[member].rank_class, node.size());
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
      seen.push_back(key);
      is_first = true;
    }
    for (const std::int32_t member : node) marked[member] = is_first;
  }
  return marked;
}

// By member: messages that one of its edges costs a NIC. Those that members of one node send to one receiver
// go in one, where they meet on a device.
std::vector<double> messages_of(const GroupSites& group, bool together, const Fabric& fabric) {
  std::vector<double> messages(group.size(), 1);
  for (const auto& node : group.nodes) {
    for (const std::int32_t member : node) {
      if (together && fabric.forwards(group.members[member].device))
        messages[member] = 1.0 / static_cast<double>(node.size());
    }
  }
  return messages;
}

// Everyone to everyone.
Traffic exchange(const CollectiveQuery& query, bool rail_local, const GroupSites& group,
                 const Fabric& fabric) {
  Traffic traffic;
  traffic.climbs = !rail_local;
  const int n = group.size();
  const std::vector<bool> counts =
      query.only_first_nodes ? in_first_nodes(group) : std::vector<bool>(n, true);
  const std::vector<double> messages = messages_of(group, rail_local, fabric);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (i == j || (!counts[i] && !counts[j])) continue;
      const double bytes = query.matrix != nullptr ? query.matrix->at(i, j) : query.bytes / n;
      if (bytes > 0) traffic.edges.push_back({i, j, bytes, messages[i]});
    }
  }
  traffic.latency =
      largest_latency(traffic.edges, group, fabric, rail_local ? RailChange::kInNode : RailChange::kAtSpine);
  return traffic;
}

}  // namespace

Steps direct_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  const Traffic once = exchange(query, false, group, fabric);
  return query.kind == OpKind::kAllReduce ? Steps{once, once} : Steps{once};
}

Steps rail_local_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  return {exchange(query, true, group, fabric)};
}

}  // namespace moebius
