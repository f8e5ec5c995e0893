#include "sim/traffic/sites.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/traffic/like_groups.h"

namespace moebius {
namespace {

// For each leaf (or pod), by index, the first one of the same capacity below which as many ranks of each
// class stand. `place_of_rank`: the leaf or pod of each rank.
std::vector<std::int32_t> stand_ins(const Layout& layout, const std::vector<std::int32_t>& place_of_rank,
                                    const Fabric& fabric, WireKind kind) {
  std::int32_t places = 0;
  for (const std::int32_t place : place_of_rank) places = std::max(places, place + 1);
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> classes(places);  // class, number of ranks
  for (std::size_t c = 0; c < layout.classes.size(); ++c) {
    for (const std::int32_t rank : layout.classes[c].ranks) {
      auto& below = classes[place_of_rank[rank]];
      if (below.empty() || below.back().first != static_cast<std::int32_t>(c))
        below.push_back({static_cast<std::int32_t>(c), 0});
      ++below.back().second;
    }
  }
  std::map<std::pair<double, std::vector<std::pair<std::int32_t, std::int32_t>>>, std::int32_t> first;
  std::vector<std::int32_t> stand_in(places);
  for (std::int32_t place = 0; place < places; ++place) {
    stand_in[place] = place;
    if (classes[place].empty()) continue;
    const double capacity = fabric.capacity({kind, place}).value;
    stand_in[place] = first.try_emplace({capacity, std::move(classes[place])}, place).first->second;
  }
  return stand_in;
}

std::int32_t at_or_same(const std::vector<std::int32_t>& stand_in, std::int32_t index) {
  return static_cast<std::size_t>(index) < stand_in.size() ? stand_in[index] : index;
}

}  // namespace

int GroupSites::per_node() const {
  for (const auto& node : nodes) {
    if (node.size() != nodes.front().size()) return 0;
  }
  return nodes.empty() ? 0 : static_cast<int>(nodes.front().size());
}

Sites::Sites(const Cluster& cluster, const Layout& layout)
    : cluster_(cluster), layout_(layout), stand_ins_(cluster.fabric, layout) {
  if (folded()) count_on_nics();
  if (!folded() || !shared_wires_bind(fabric())) return;
  std::vector<std::int32_t> leaves, pods;
  for (const std::int32_t device : layout.device_of_rank) {
    const Fabric::Standing standing = fabric().standing(device);
    leaves.push_back(standing.leaf);
    pods.push_back(standing.pod);
  }
  leaf_stand_in_ = stand_ins(layout, leaves, fabric(), WireKind::kLeafUp);
  pod_stand_in_ = stand_ins(layout, pods, fabric(), WireKind::kPodUp);
}

void Sites::count_on_nics() {
  const auto nic_of = [&](int rank) { return fabric().own_wire(WireKind::kNicOut, device_of(rank)).index; };
  bool share = false;
  for (int rank = 0; rank < layout_.ranks && !share; ++rank) share = nic_of(rank) != device_of(rank);
  for (int rank = 0; rank < layout_.ranks && share; ++rank)
    ++ranks_on_nic_[{layout_.class_of_rank[rank], nic_of(rank)}];
}

double Sites::ranks_a_member(const GroupSites& group, int nic) const {
  if (ranks_on_nic_.empty()) return 1;
  std::set<std::int32_t> classes;
  int members = 0, ranks = 0;
  for (const Member& member : group.members) {
    if (fabric().own_wire(WireKind::kNicOut, member.device).index != nic) continue;
    ++members;
    if (classes.insert(member.rank_class).second) ranks += ranks_on_nic_.at({member.rank_class, nic});
  }
  return members > 0 ? static_cast<double>(ranks) / members : 1;
}

WireId Sites::stand_in(WireId wire) const {
  if (wire.kind == WireKind::kLeafUp || wire.kind == WireKind::kLeafDown)
    return {wire.kind, at_or_same(leaf_stand_in_, wire.index)};
  if (wire.kind == WireKind::kPodUp || wire.kind == WireKind::kPodDown)
    return {wire.kind, at_or_same(pod_stand_in_, wire.index)};
  if (wire.kind == WireKind::kScaleUpPair) return {wire.kind, stand_ins_.of_pair(wire.index)};
  return wire;
}

// Pools of one chip that reach each other without host memory.
std::pair<int, std::string> Sites::island_of(int device) const {
  if (cluster_.pools.size() == 1) return {};
  return {fabric().island_of(device), cluster_.pool_of(device).accelerator.id};
}

GroupSites Sites::group(const std::vector<std::int32_t>& ranks) const {
  GroupSites sites;
  std::vector<std::pair<std::int32_t, std::int32_t>> by_device;  // device, member
  for (const std::int32_t rank : ranks) {
    const int device = device_of(rank);
    by_device.push_back({device, sites.size()});
    sites.members.push_back({rank, layout_.class_of_rank[rank], device, fabric().node_of(device)});
  }
  std::sort(by_device.begin(), by_device.end());
  for (const auto& [device, member] : by_device) {
    const bool same =
        !sites.nodes.empty() && sites.members[sites.nodes.back().back()].node == sites.members[member].node;
    if (!same) sites.nodes.emplace_back();
    sites.nodes.back().push_back(member);
  }
  std::map<std::pair<int, std::string>, std::vector<std::int32_t>> islands;
  for (const auto& [device, member] : by_device) islands[island_of(device)].push_back(member);
  for (auto& [island, members] : islands) sites.islands.push_back(std::move(members));
  return sites;
}

GroupSites Sites::group(const Group& group, const RankClass& of) const {
  GroupSites sites = this->group(group.ranks);
  if (!folded()) return sites;
  sites.all_shifts = shifts_of(group, of);
  sites.shifts = distinct_shifts(*this, sites, sites.all_shifts, RailChange::kInNode);
  sites.climbing_shifts = distinct_shifts(*this, sites, sites.all_shifts, RailChange::kAtSpine);
  return sites;
}

double Sites::channel_rate(const GroupSites& group) const {
  double rate =
      group.members.empty() ? 0 : cluster_.pool_of(group.members[0].device).accelerator.channel_rate.value;
  for (const Member& member : group.members)
    rate = std::min(rate, cluster_.pool_of(member.device).accelerator.channel_rate.value);
  return rate;
}

}  // namespace moebius
