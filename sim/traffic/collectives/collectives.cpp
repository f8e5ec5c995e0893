// The table of families, and what surrounds every algorithm: who may use it, how fast its channels are.
#include "sim/traffic/collectives.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "hw/error.h"
#include "sim/traffic/collectives/families.h"
#include "sim/traffic/collectives/rails.h"
#include "workloads/schedule/algorithms.h"

namespace moebius {
namespace {

constexpr double kMostInMessage = 128 * 1024;  // NCCL_P2P_NET_CHUNKSIZE

using Family = Steps (*)(const CollectiveQuery&, const GroupSites&, const Fabric&);

Family family_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kAuto:
    case Algorithm::kLibrary:
      break;
    case Algorithm::kRing:
      return ring_steps;
    case Algorithm::kDirect:
      return direct_steps;
    case Algorithm::kTree:
      return tree_steps;
    case Algorithm::kHierarchical:
      return hierarchical_steps;
    case Algorithm::kInSwitch:
      return in_switch_steps;
    case Algorithm::kRailLocal:
      return rail_local_steps;
  }
  CHECK(false, "the algorithm is chosen by modelled cost before");
  return nullptr;
}

// A switch that reduces saves nothing between two members.
bool nodes_reduce(const GroupSites& group, const Fabric& fabric) {
  return std::all_of(group.nodes.begin(), group.nodes.end(), [&](const auto& node) {
    return node.size() == 1 || fabric.reduces(group.members[node.front()].device);
  });
}

// Members of one node stand on the boards in their order.
bool nodes_are_boards(const GroupSites& group, const Fabric& fabric) {
  return std::all_of(group.nodes.begin(), group.nodes.end(), [&](const auto& node) {
    const int first = group.members[node.front()].device, last = group.members[node.back()].device;
    return fabric.distance(first, last) != Distance::kBoards;
  });
}

// The bytes that the busiest member sends, at the rate of its channels.
void slow_down(Traffic& traffic, double most_sent, int members) {
  std::vector<double> sent(members, 0);
  for (const Edge& edge : traffic.edges) {
    if (edge.from >= 0) sent[edge.from] += edge.bytes;
  }
  for (const Mesh& mesh : traffic.meshes) {
    const auto others = static_cast<double>(mesh.members.size()) - 1;
    for (const std::int32_t member : mesh.members) sent[member] += mesh.bytes * others;
  }
  traffic.least_seconds = *std::max_element(sent.begin(), sent.end()) / most_sent;
}

// Each part in one message, and no switch short of uplinks.
bool is_for_messages(const CollectiveQuery& query, const GroupSites& group, const Fabric& fabric) {
  return query.bytes / group.size() <= kMostInMessage && !fabric.can_bind(WireKind::kLeafUp) &&
         !fabric.can_bind(WireKind::kPodUp);
}

}  // namespace

std::string what_lacks(Algorithm algorithm, OpKind kind, const GroupSites& group, const Fabric& fabric) {
  if (!has_algorithm(kind, algorithm)) return fmt::format("{} has no such algorithm", to_string(kind));
  if (algorithm != Algorithm::kInSwitch) return {};
  if (group.islands.size() > 1) return "its members stand on different chips";
  if (group.per_node() == 0) return "the group has not equally many members in each node";
  if (!nodes_reduce(group, fabric)) return "the scale-up switches of its nodes do not reduce";
  if (!nodes_are_boards(group, fabric)) return "its members stand on several boards of a node";
  const bool one_each = group.per_node() == 1;
  return one_each && !fabric.spec().reduces ? "the switches of the network do not reduce" : "";
}

std::vector<Algorithm> automatic_choices(const CollectiveQuery& query, const GroupSites& group,
                                         const Fabric& fabric) {
  std::vector<Algorithm> choices;
  const bool several = group.nodes.size() > 1, exchange = query.kind == OpKind::kAllToAll;
  for (const AlgorithmRow& row : algorithm_rows()) {
    if (!what_lacks(row.value, query.kind, group, fabric).empty()) continue;
    if (row.value == Algorithm::kDirect && several && !exchange && !is_for_messages(query, group, fabric))
      continue;
    if (exchange && row.value == Algorithm::kRing) continue;  // never faster than all rounds at once
    const bool by_islands = !exchange && group.islands.size() > 1;
    if (row.value == Algorithm::kHierarchical && !by_islands && (!has_hierarchy(group) || query.matrix))
      continue;
    if (row.value == Algorithm::kRailLocal && !several) continue;
    if (row.value == Algorithm::kInSwitch && group.size() < 3) continue;
    choices.push_back(row.value);
  }
  return choices;
}

std::vector<Traffic> collective_traffic(const CollectiveQuery& query, const GroupSites& group,
                                        const Fabric& fabric) {
  const Family family = family_of(query.algorithm);
  if (group.size() < 2) return {};
  if (!has_algorithm(query.kind, query.algorithm))
    throw input_error(
        fmt::format("{} has no algorithm \"{}\"", to_string(query.kind), to_string(query.algorithm)));
  if (const std::string lack = what_lacks(query.algorithm, query.kind, group, fabric); !lack.empty())
    throw input_error(
        fmt::format("{} by \"{}\": {}", to_string(query.kind), to_string(query.algorithm), lack));
  std::vector<Traffic> steps = family(query, group, fabric);
  if (query.most_sent > 0) {
    for (Traffic& step : steps) slow_down(step, query.most_sent, group.size());
  }
  return steps;
}

}  // namespace moebius
