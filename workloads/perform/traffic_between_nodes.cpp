#include "workloads/perform/traffic_between_nodes.h"

#include <algorithm>
#include <array>

namespace moebius {

namespace {

LinkPattern pattern_of(GroupRole role) {
  switch (role) {
    case GroupRole::kExpert:
      return LinkPattern::kExchange;
    case GroupRole::kNext:
    case GroupRole::kPrevious:
    case GroupRole::kTied:
      return LinkPattern::kChain;
    case GroupRole::kNone:
    case GroupRole::kTensor:
    case GroupRole::kContext:
    case GroupRole::kData:
    case GroupRole::kExpertData:
    case GroupRole::kWorld:
    case GroupRole::kDenseTensor:
    case GroupRole::kDenseData:
    case GroupRole::kShard:
    case GroupRole::kReplica:
    case GroupRole::kExpertShard:
    case GroupRole::kExpertReplica:
    case GroupRole::kBatch:
    case GroupRole::kExpertTensor:
    case GroupRole::kScales:
    case GroupRole::kRegather:
    case GroupRole::kExpertRegather:
      return LinkPattern::kRing;
  }
  return LinkPattern::kRing;
}

// On how many nodes the widest group of a role stands, and how far apart they are.
GroupTraffic widest(const Layout& layout, GroupRole role, int cards_per_node) {
  GroupTraffic most{.pattern = pattern_of(role), .nodes = 1, .stride = 1};
  for (const RankClass& rank_class : layout.classes) {
    std::vector<int> nodes;
    for (const std::int32_t rank : rank_class.group(role).ranks)
      nodes.push_back(layout.device_of_rank[rank] / cards_per_node);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    if (static_cast<int>(nodes.size()) <= most.nodes) continue;
    most.nodes = static_cast<int>(nodes.size());
    most.stride = nodes[1] - nodes[0];
  }
  return most;
}

}  // namespace

std::vector<GroupTraffic> traffic_between_nodes(const Report& report, const Layout& layout,
                                                double step_seconds) {
  const Breakdown& sums = report.metrics.breakdown;
  const double all = step_seconds * report.scenario->training.num_steps();
  const int cards = report.scenario->cluster->pools[0].node.accelerators;
  std::vector<GroupTraffic> by_pattern;
  for (int role = 0; role < kNumGroupRoles; ++role) {
    if (sums.communication_by_group[role] <= 0) continue;
    GroupTraffic traffic = widest(layout, static_cast<GroupRole>(role), cards);
    if (traffic.nodes < 2) continue;
    traffic.exposed = sums.exposed_by_group[role] / all;
    traffic.busy = std::min(1.0, sums.communication_by_group[role] / all);
    const auto same = std::find_if(by_pattern.begin(), by_pattern.end(), [&](const GroupTraffic& other) {
      return other.pattern == traffic.pattern;
    });
    if (same == by_pattern.end()) {
      by_pattern.push_back(traffic);
      continue;
    }
    same->exposed += traffic.exposed;
    same->busy = std::min(1.0, same->busy + traffic.busy);
    if (traffic.nodes > same->nodes) same->nodes = traffic.nodes, same->stride = traffic.stride;
  }
  return by_pattern;
}

}  // namespace moebius
