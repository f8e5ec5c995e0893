#include "sim/network/stand_ins.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sim/network/group_runs.h"

namespace moebius {
namespace {

// The groups in which ranks of a class meet others. Those of the whole world say nothing.
class Meetings {
 public:
  explicit Meetings(const RankClass& rank_class) : class_(&rank_class) {
    for (int role = 0; role < kNumGroupRoles; ++role) {
      if (role == static_cast<int>(GroupRole::kWorld)) continue;
      if (rank_class.groups[role].ranks.size() > 1)
        groups_.push_back({role, GroupRuns::of(rank_class.groups[role])});
    }
  }

  // A bit for each role in whose group `rank`, of the class, has the other rank with it.
  std::int32_t roles(std::int32_t rank, std::int32_t other) const {
    std::int32_t roles = 0;
    for (const auto& [role, runs] : groups_)
      if (runs ? runs->meet(rank, other) : meet_as_first(role, rank, other)) roles |= 1 << role;
    return roles;
  }

 private:
  // As if groups without an order were all like that of the representative.
  bool meet_as_first(int role, std::int32_t rank, std::int32_t other) const {
    const std::vector<std::int32_t>& ranks = class_->groups[role].ranks;
    const std::int32_t like = other - (rank - class_->representative());
    return std::find(ranks.begin(), ranks.end(), like) != ranks.end();
  }

  const RankClass* class_;
  std::vector<std::pair<int, std::optional<GroupRuns>>> groups_;
};

static_assert(kNumGroupRoles < 32, "a bit for each role");

}  // namespace

StandIns::StandIns(const Fabric& fabric, const Layout& layout)
    : of_device_(fabric.num_devices()), devices_(fabric.num_devices()), nics_(fabric.num_devices()) {
  for (std::size_t device = 0; device < of_device_.size(); ++device)
    of_device_[device] = static_cast<std::int32_t>(device);
  for (const RankClass& rank_class : layout.classes) {
    folded_ = folded_ || rank_class.size() > 1;
    const std::int32_t stand_in = layout.device_of_rank[rank_class.representative()];
    for (const std::int32_t rank : rank_class.ranks) of_device_[layout.device_of_rank[rank]] = stand_in;
  }
  // Devices that share a NIC have one wire there.
  std::vector<bool> counted(of_device_.size());
  for (const std::int32_t device : layout.device_of_rank) {
    ++devices_[of_device_[device]];
    const std::int32_t nic = fabric.own_wire(WireKind::kNicOut, device).index;
    if (counted[nic]) continue;
    counted[nic] = true;
    ++nics_[of_device_[nic]];
  }
  // Messages through host memory are those of nodes, not of a class's representative.
  if (folded_ && fabric.spec().by_host.empty()) count_hosts(fabric, layout);
  if (folded_ && !fabric.spec().by_host.empty()) find_alike_hosts(fabric, layout);
  if (folded_ && fabric.pairs_of_device() > 1) count_pairs(fabric, layout);
}

void StandIns::count_pairs(const Fabric& fabric, const Layout& layout) {
  const int peers = fabric.pairs_of_device();
  of_pair_.resize(of_device_.size() * peers);
  std::iota(of_pair_.begin(), of_pair_.end(), 0);
  pairs_.resize(of_pair_.size());
  std::vector<std::int32_t> rank_of(of_device_.size(), -1);
  for (std::int32_t rank = 0; rank < layout.ranks; ++rank) rank_of[layout.device_of_rank[rank]] = rank;
  const std::vector<Meetings> meetings(layout.classes.begin(), layout.classes.end());
  using Key = std::array<std::int32_t, 4>;  // both classes, roles, how far apart
  std::map<Key, std::int32_t> first;
  for (std::int32_t device = 0; device < fabric.num_devices(); ++device) {
    const std::int32_t rank = rank_of[device];
    const Fabric::Standing at = fabric.standing(device);
    const FabricPool& pool = fabric.pools()[at.pool];
    if (rank < 0 || pool.pair_rate.value <= 0) continue;
    const std::int32_t of_rank = layout.class_of_rank[rank];
    for (int local = 0; local < pool.devices_per_node; ++local) {
      const std::int32_t other = rank_of[device - at.local + local];
      if (other < 0 || local == at.local) continue;
      const std::int32_t roles = meetings[of_rank].roles(rank, other);
      const Key key{of_rank, layout.class_of_rank[other], roles, roles == 0 ? other - rank : 0};
      const std::int32_t pair = device * peers + local;
      of_pair_[pair] = first.try_emplace(key, pair).first->second;
      ++pairs_[of_pair_[pair]];
    }
  }
}

// A class copies to and from the memory of its representative's node, with as many ranks as it has there.
void StandIns::count_hosts(const Fabric& fabric, const Layout& layout) {
  hosts_.resize(of_device_.size());
  std::vector<double> here(of_device_.size());
  for (const RankClass& rank_class : layout.classes) {
    const std::int32_t device = layout.device_of_rank[rank_class.representative()];
    const Fabric::Standing place = fabric.standing(device);
    const std::int32_t host = device - place.local;
    for (const std::int32_t rank : rank_class.ranks)
      here[host] += fabric.node_of(layout.device_of_rank[rank]) == place.node;
    hosts_[host] += rank_class.size();
  }
  for (std::size_t host = 0; host < here.size(); ++host)
    if (here[host] > 0) hosts_[host] /= here[host];
}

void StandIns::find_alike_hosts(const Fabric& fabric, const Layout& layout) {
  using Ranks = std::map<std::int32_t, std::int32_t>;  // by class
  std::map<std::int32_t, Ranks> hosts;
  for (std::int32_t rank = 0; rank < layout.ranks; ++rank) {
    const std::int32_t device = layout.device_of_rank[rank];
    ++hosts[device - fabric.standing(device).local][layout.class_of_rank[rank]];
  }
  alike_host_.resize(of_device_.size());
  std::iota(alike_host_.begin(), alike_host_.end(), 0);
  num_alike_.resize(of_device_.size(), 1);
  std::map<std::pair<double, Ranks>, std::int32_t> first;
  for (const auto& [host, ranks] : hosts) {
    const double capacity = fabric.capacity({WireKind::kHostMemory, host}).value;
    const auto [place, added] = first.try_emplace({capacity, ranks}, host);
    alike_host_[host] = place->second;
    if (!added) ++num_alike_[place->second];
  }
}

double StandIns::times(WireId wire) const {
  if (!folded_) return 1;
  switch (wire.kind) {
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
    case WireKind::kBoardOut:
    case WireKind::kBoardIn:
    case WireKind::kHostOut:
    case WireKind::kHostIn:
      return std::max(1.0, devices_[wire.index]);
    case WireKind::kNicOut:
    case WireKind::kNicIn:
      return std::max(1.0, nics_[wire.index]);
    case WireKind::kHostMemory:
      return hosts_.empty() ? 1 : std::max(1.0, hosts_[wire.index]);
    case WireKind::kScaleUpPair:
      return pairs_.empty() ? 1 : std::max(1.0, pairs_[wire.index]);
    case WireKind::kNicOutPort:
    case WireKind::kNicInPort:
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:
    case WireKind::kPodUp:
    case WireKind::kPodDown:
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort:
    case WireKind::kRegionLink:
      return 1;
  }
  return 1;
}

}  // namespace moebius
