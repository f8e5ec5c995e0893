#include "workloads/training/pipeline/split_groups.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace moebius {
namespace {

constexpr std::array<std::pair<GroupRole, const char*>, 5> kGroups{
    {{GroupRole::kTensor, "tensor"},
     {GroupRole::kDenseTensor, "dense tensor"},
     {GroupRole::kContext, "context"},
     {GroupRole::kExpert, "expert"},
     {GroupRole::kExpertTensor, "expert tensor"}}};

struct Split {
  const char* name = nullptr;
  int size = 0;    // ranks of a group
  int block = 0;   // neighbouring ranks that its groups share out, rank by rank
  int ranks = 0;   // in such groups
  int domain = 0;  // devices of the smallest domain that they stand in
};

// Devices of the smallest scale-up domain in which members stand, and whether they stand in several.
std::pair<int, bool> domains_of(const Cluster& cluster, const Layout& layout, const Group& group) {
  int smallest = std::numeric_limits<int>::max();
  bool several = false;
  const int first = cluster.fabric.node_of(layout.device_of_rank[group.ranks.front()]);
  for (const std::int32_t rank : group.ranks) {
    const int device = layout.device_of_rank[rank];
    smallest = std::min(smallest, cluster.pool_of(device).node.accelerators);
    several |= cluster.fabric.node_of(device) != first;
  }
  return {smallest, several};
}

// A context group stands between the tensor groups of others: a domain holds all of its block or part of it.
int block_of(const Group& group) {
  return static_cast<int>(group.ranks.size()) * (group.ranks[1] - group.ranks[0]);
}

Split largest_split(const Cluster& cluster, const Layout& layout) {
  Split largest;
  for (const auto& [role, name] : kGroups) {
    for (const RankClass& rank_class : layout.classes) {
      const Group& group = rank_class.group(role);
      const auto size = static_cast<int>(group.ranks.size());
      if (size < 2) continue;
      const int block = block_of(group);
      if (block < largest.block) continue;
      const auto [domain, several] = domains_of(cluster, layout, group);
      if (!several || block > domain) continue;
      if (block > largest.block) largest = {name, size, block, 0, domain};
      if (name != largest.name) continue;  // as large: the same ranks may stand in both
      largest.ranks += rank_class.size();
      largest.domain = std::min(largest.domain, domain);
    }
  }
  return largest;
}

}  // namespace

std::vector<std::string> groups_over_domains(const Cluster& cluster, const Layout& layout) {
  if (cluster.exchange) return {};  // virtual ranks share a device
  const Split split = largest_split(cluster, layout);
  if (split.size == 0) return {};
  const int used = split.domain / split.block * split.block;
  return {fmt::format(
      "{} of {} ranks are in {} groups of {} that stand over several scale-up domains, though one of "
      "{} devices has room: /plan/placement/devices \"0-{}, {}-{}, ...\" would keep them together",
      split.ranks, layout.ranks, split.name, split.size, split.domain, used - 1, split.domain,
      split.domain + used - 1)};
}

std::optional<WholeGroups> devices_of_whole_groups(const Cluster& cluster, const Layout& layout) {
  if (cluster.exchange) return std::nullopt;
  const Split split = largest_split(cluster, layout);
  if (split.size == 0) return std::nullopt;
  WholeGroups whole{split.name, {}};
  std::int32_t first = 0;
  for (const Pool& pool : cluster.pools) {
    const int domain = pool.node.accelerators;
    for (std::int64_t node = 0; node < pool.nodes; ++node, first += domain)
      for (int i = 0; i < domain / split.block * split.block; ++i) whole.devices.push_back(first + i);
  }
  return whole;
}

}  // namespace moebius
