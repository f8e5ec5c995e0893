#include "sim/traffic/sites.h"

#include <algorithm>

namespace moebius {
namespace {

bool is_upward(WireKind kind) {
  return kind == WireKind::kLeafUp || kind == WireKind::kPodUp;
}
bool is_downward(WireKind kind) {
  return kind == WireKind::kLeafDown || kind == WireKind::kPodDown;
}

}  // namespace

int GroupSites::per_node() const {
  for (const auto& node : nodes) {
    if (node.size() != nodes.front().size()) return 0;
  }
  return nodes.empty() ? 0 : static_cast<int>(nodes.front().size());
}

Sites::Sites(const Cluster& cluster, const Layout& layout) : cluster_(cluster), layout_(layout) {
  stand_in_.resize(cluster.fabric.num_devices());
  for (std::size_t device = 0; device < stand_in_.size(); ++device)
    stand_in_[device] = static_cast<int>(device);
  for (const RankClass& rank_class : layout.classes) {
    folded_ = folded_ || rank_class.size() > 1;
    for (const std::int32_t rank : rank_class.ranks)
      stand_in_[device_of(rank)] = device_of(rank_class.representative());
  }
}

GroupSites Sites::group(const std::vector<std::int32_t>& ranks) const {
  GroupSites sites;
  std::map<std::int32_t, std::vector<std::int32_t>> nodes, islands;
  for (const std::int32_t rank : ranks) {
    const int device = device_of(rank), node = fabric().node_of(device);
    nodes[node].push_back(sites.size());
    islands[fabric().island_of(device)].push_back(sites.size());
    sites.members.push_back({rank, layout_.class_of_rank[rank], device, node});
  }
  for (auto& [node, members] : nodes) {
    std::stable_sort(members.begin(), members.end(), [&](std::int32_t a, std::int32_t b) {
      return sites.members[a].device < sites.members[b].device;
    });
    sites.nodes.push_back(std::move(members));
  }
  for (auto& [island, members] : islands) {
    std::stable_sort(members.begin(), members.end(), [&](std::int32_t a, std::int32_t b) {
      return sites.members[a].device < sites.members[b].device;
    });
    sites.islands.push_back(std::move(members));
  }
  return sites;
}

// Found by asking the fabric for ways to devices of the same local index, so that no message changes rail:
// leaves and pods hold neighbouring nodes, so that the first node, the last or the one half the pool away is
// behind another, if any is.
std::int32_t Sites::shared_wire(int device, WireKind kind) {
  const int first_kind = static_cast<int>(WireKind::kLeafUp);
  const auto [known, is_new] = shared_wires_.try_emplace(device, std::array<std::int32_t, 4>{-1, -1, -1, -1});
  std::array<std::int32_t, 4>& wires = known->second;
  if (is_new) {
    for (const int far : same_rail_elsewhere(device)) {
      std::vector<WireId> out, in;
      fabric().route(device, far, out);
      fabric().route(far, device, in);
      for (const WireId wire : out) {
        if (is_upward(wire.kind)) wires[static_cast<int>(wire.kind) - first_kind] = wire.index;
      }
      for (const WireId wire : in) {
        if (is_downward(wire.kind)) wires[static_cast<int>(wire.kind) - first_kind] = wire.index;
      }
    }
  }
  return wires[static_cast<int>(kind) - first_kind];
}

// All that a region sends to another crosses one link: ranks of the class that stand where the member stands.
bool Sites::crosses(int device, WireId shared) {
  if (shared.kind == WireKind::kHostMemory)
    return fabric().node_of(device) == fabric().node_of(shared.index);
  if (shared.kind == WireKind::kRegionLink)
    return fabric().region_of(device) == shared.index / fabric().num_regions();
  return shared_wire(device, shared.kind) == shared.index;
}

std::array<int, 3> Sites::same_rail_elsewhere(int device) const {
  int first = 0;
  for (const Pool& pool : cluster_.pools) {
    if (device < first + pool.devices()) {
      const int width = pool.node.accelerators, node = (device - first) / width,
                local = (device - first) % width;
      const int last = first + (pool.nodes - 1) * width + local;
      return {first + local, last, first + (node + pool.nodes / 2) % pool.nodes * width + local};
    }
    first += pool.devices();
  }
  return {device, device, device};
}

double Sites::ranks_for_each(const GroupSites& group, int member, WireId shared) {
  const int rank_class = group.members[member].rank_class;
  const RankClass& of = layout_.classes[rank_class];
  if (of.size() == 1) return 1;
  const auto [entry, is_new] = class_ranks_on_.try_emplace({rank_class, shared}, 0);
  if (is_new) {
    for (const std::int32_t rank : of.ranks) entry->second += crosses(device_of(rank), shared);
  }
  int listed = 0;
  for (const Member& other : group.members) {
    listed += other.rank_class == rank_class && crosses(other.device, shared);
  }
  return listed > 0 ? std::max(1.0, static_cast<double>(entry->second) / listed) : 1;
}

}  // namespace moebius
