#include "sim/traffic/like_groups.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "hw/fabric/shared_places.h"
#include "sim/network/group_runs.h"

namespace moebius {
namespace {

// Where the members of one group stand, and what its messages cross.
struct Footprint {
  std::vector<std::array<std::int32_t, kNumSharedPlaces>>
      places;  // leaf, pod, region, node of each member, in group order
  std::vector<std::pair<SharedPlace, std::int32_t>> crossed;
};

// Messages between nodes stay within a column, as they change it inside a node. So a leaf is left only where
// members of one local index stand on several. Where they climb, over PCIe, and between nodes of several
// sizes, any other leaf will do.
class Footprints {
 public:
  Footprints(const Sites& sites, const GroupSites& group, RailChange change) : sites_(sites), group_(group) {
    const std::vector<Pool>& pools = sites.cluster().pools;
    width_ = pools.front().node.accelerators;
    for (const Pool& pool : pools) {
      if (pool.node.accelerators != width_ || pool.node.scale_up == ScaleUp::kPcie) width_ = 1;
      if (change == RailChange::kAtSpine) width_ = 1;
    }
    for (int level = 0; level < kNumSharedPlaces; ++level)
      binds_[level] = can_bind(sites.fabric(), static_cast<SharedPlace>(level));
  }

  // Whether all nodes hold members at the same places, so that messages between them stay in their columns.
  // Elsewhere they cross leaves of the receiver's column, below which no member need stand.
  bool keeps_columns(std::int32_t shift) const {
    if (width_ == 1) return true;
    std::map<int, std::vector<int>> places;  // by node
    for (const Member& member : group_.members) {
      const int device = sites_.device_of(member.rank + shift);
      places[sites_.fabric().node_of(device)].push_back(device % width_);
    }
    for (auto& [node, of] : places) std::sort(of.begin(), of.end());
    return std::all_of(places.begin(), places.end(),
                       [&](const auto& node) { return node.second == places.begin()->second; });
  }

  Footprint at(std::int32_t shift) const {
    Footprint footprint;
    std::array<std::vector<std::pair<int, std::int32_t>>, kNumSharedPlaces> seen;  // local index, place
    for (const Member& member : group_.members) {
      const int device = sites_.device_of(member.rank + shift);
      const Fabric::Standing standing = sites_.fabric().standing(device);
      footprint.places.push_back(
          {standing.leaf, standing.pod, standing.region, sites_.fabric().node_of(device)});
      for (int level = 0; level < kNumSharedPlaces; ++level) {
        if (binds_[level]) seen[level].push_back({device % width_, footprint.places.back()[level]});
      }
    }
    for (int level = 0; level < kNumSharedPlaces; ++level)
      add_crossed(static_cast<SharedPlace>(level), seen[level], footprint);
    return footprint;
  }

 private:
  static void add_crossed(SharedPlace level, std::vector<std::pair<int, std::int32_t>>& seen,
                          Footprint& footprint) {
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const bool has_other = (i > 0 && seen[i - 1].first == seen[i].first) ||
                             (i + 1 < seen.size() && seen[i + 1].first == seen[i].first);
      if (has_other) footprint.crossed.push_back({level, seen[i].second});
    }
  }

  const Sites& sites_;
  const GroupSites& group_;
  std::array<bool, kNumSharedPlaces> binds_{};
  int width_ = 1;
};

// Groups that cross one leaf, pod or region, directly or through others, are one set.
std::vector<std::vector<std::int32_t>> sets_of(const std::vector<Footprint>& footprints) {
  std::vector<std::int32_t> parent(footprints.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](std::int32_t at) {
    while (parent[at] != at) at = parent[at] = parent[parent[at]];
    return at;
  };
  std::map<std::pair<SharedPlace, std::int32_t>, std::int32_t> user;  // the first group that crosses it
  for (std::size_t i = 0; i < footprints.size(); ++i) {
    for (const auto& place : footprints[i].crossed) {
      const std::int32_t first = user.try_emplace(place, static_cast<std::int32_t>(i)).first->second;
      const std::int32_t a = root(first), b = root(static_cast<std::int32_t>(i));
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  std::vector<std::vector<std::int32_t>> sets(footprints.size());
  for (std::size_t i = 0; i < footprints.size(); ++i) {
    if (!footprints[i].crossed.empty())
      sets[root(static_cast<std::int32_t>(i))].push_back(static_cast<int>(i));
  }
  std::erase_if(sets, [](const auto& set) { return set.empty(); });
  return sets;
}

// What a set looks like, whichever leaves and pods it stands on: their numbers in the order of first use, and
// the wires that stand for theirs. Regions are told apart: no link stands for another.
std::vector<std::int32_t> shape_of(const std::vector<std::int32_t>& set,
                                   const std::vector<Footprint>& footprints, const Sites& sites) {
  std::vector<std::int32_t> shape;
  std::unordered_map<std::int32_t, std::int32_t> leaves, pods, hosts;
  for (const std::int32_t group : set) {
    for (const auto& [leaf, pod, region, host] : footprints[group].places) {
      const auto leaf_number = static_cast<std::int32_t>(leaves.size());
      const auto pod_number = static_cast<std::int32_t>(pods.size());
      const auto host_number = static_cast<std::int32_t>(hosts.size());
      shape.insert(shape.end(), {leaves.try_emplace(leaf, leaf_number).first->second,
                                 sites.stand_in(WireId{WireKind::kLeafUp, leaf}).index,
                                 pods.try_emplace(pod, pod_number).first->second,
                                 sites.stand_in(WireId{WireKind::kPodUp, pod}).index, region,
                                 hosts.try_emplace(host, host_number).first->second});
    }
  }
  return shape;
}

}  // namespace

bool shared_wires_bind(const Fabric& fabric) {
  return can_bind(fabric, SharedPlace::kLeaf) || can_bind(fabric, SharedPlace::kPod) ||
         can_bind(fabric, SharedPlace::kRegion) || can_bind(fabric, SharedPlace::kHost);
}

std::vector<std::int32_t> shifts_of(const Group& group, const RankClass& of) {
  const std::optional<GroupRuns> runs = GroupRuns::of(group);
  if (!runs) return {0};
  std::vector<std::int32_t> shifts;
  for (const std::int32_t rank : of.ranks)
    if (runs->index_of(rank) == group.my_index) shifts.push_back(rank - of.representative());
  return shifts;
}

std::vector<std::int32_t> distinct_shifts(const Sites& sites, const GroupSites& group,
                                          const std::vector<std::int32_t>& shifts, RailChange change) {
  if (group.nodes.size() < 2 || !shared_wires_bind(sites.fabric())) return {};
  const Footprints all(sites, group, change);
  if (!std::all_of(shifts.begin(), shifts.end(), [&](std::int32_t s) { return all.keeps_columns(s); }))
    return shifts;
  std::vector<Footprint> footprints;
  footprints.reserve(shifts.size());
  for (const std::int32_t shift : shifts) footprints.push_back(all.at(shift));
  std::set<std::vector<std::int32_t>> seen;
  std::vector<std::int32_t> distinct;
  for (const std::vector<std::int32_t>& set : sets_of(footprints)) {
    if (!seen.insert(shape_of(set, footprints, sites)).second) continue;
    for (const std::int32_t group_index : set) distinct.push_back(shifts[group_index]);
  }
  return distinct;
}

}  // namespace moebius
