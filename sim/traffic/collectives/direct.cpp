#include <numeric>
#include <utility>

#include "sim/traffic/collectives/families.h"
#include "sim/traffic/collectives/rails.h"
#include "sim/traffic/mesh_pairs.h"

namespace moebius {
namespace {

constexpr int kFewMembers = 32;  // members whose pairs are listed one by one

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

std::vector<int> devices_of(const Mesh& mesh, const GroupSites& group) {
  std::vector<int> devices;
  for (const std::int32_t member : mesh.members) devices.push_back(group.members[member].device);
  return devices;
}

// Each posts to its neighbour first, as libraries do: no receiver is everybody's first.
Traffic listed(const CollectiveQuery& query, const std::vector<double>& messages, int n) {
  Traffic traffic;
  for (int i = 0; i < n; ++i) {
    for (int step = 1; step < n; ++step) {
      const int j = (i + step) % n;
      const double bytes = query.matrix != nullptr ? query.matrix->at(i, j) : query.bytes / n;
      if (bytes > 0) traffic.edges.push_back({i, j, bytes, messages[i]});
    }
  }
  return traffic;
}

// Everyone to everyone.
Traffic exchange(const CollectiveQuery& query, bool rail_local, const GroupSites& group,
                 const Fabric& fabric) {
  const RailChange change = rail_local ? RailChange::kInNode : RailChange::kAtSpine;
  const std::vector<double> messages = messages_of(group, rail_local, fabric);
  const int n = group.size();
  Traffic traffic;
  if (query.matrix != nullptr || n <= kFewMembers) {
    traffic = listed(query, messages, n);
    traffic.latency = largest_latency(traffic.edges, group, fabric, change);
  } else {
    std::vector<std::int32_t> all(n);
    std::iota(all.begin(), all.end(), 0);
    traffic = mesh_traffic({all, query.bytes / n, messages}, group, fabric, change);
  }
  traffic.climbs = !rail_local;
  return traffic;
}

}  // namespace

Traffic mesh_traffic(Mesh mesh, const GroupSites& group, const Fabric& fabric, RailChange change) {
  Traffic traffic;
  traffic.latency = MeshPairs(devices_of(mesh, group), fabric, change).largest_latency();
  traffic.meshes.push_back(std::move(mesh));
  return traffic;
}

double mean_mesh_latency(const Mesh& mesh, const GroupSites& group, const Fabric& fabric) {
  return MeshPairs(devices_of(mesh, group), fabric, RailChange::kInNode).mean_latency();
}

Steps direct_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  const Traffic once = exchange(query, false, group, fabric);
  return query.kind == OpKind::kAllReduce ? Steps{once, once} : Steps{once};
}

Steps rail_local_steps(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  return {exchange(query, true, group, fabric)};
}

}  // namespace moebius
