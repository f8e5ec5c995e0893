#include "sim/traffic/like_groups.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

namespace moebius {
namespace {

bool leaves_bind(const Fabric& fabric) {
  return fabric.can_bind(WireKind::kLeafUp) || fabric.can_bind(WireKind::kLeafDown);
}
bool pods_bind(const Fabric& fabric) {
  return fabric.can_bind(WireKind::kPodUp) || fabric.can_bind(WireKind::kPodDown);
}

// Where the members of one group stand: leaf and pod of each, and which of them its messages leave or enter.
struct Footprint {
  std::vector<std::int32_t> places;   // leaf, pod of each member, in group order
  std::vector<std::int32_t> crossed;  // places as above, pods as -1 - pod; ascending
};

// Messages between nodes stay within a column, as they change it inside a node. So a leaf is left only where
// members of one local index stand on several. In mixed clusters, and over PCIe, any other leaf will do.
class Footprints {
 public:
  Footprints(const Sites& sites, const GroupSites& group)
      : sites_(sites),
        group_(group),
        leaves_bind_(leaves_bind(sites.fabric())),
        pods_bind_(pods_bind(sites.fabric())) {
    const Pool& pool = sites.cluster().pools.front();
    const bool changes_inside = sites.cluster().pools.size() == 1 && pool.node.scale_up != ScaleUp::kPcie &&
                                pool.node.accelerators > 0;
    width_ = changes_inside ? pool.node.accelerators : 1;
  }

  Footprint at(std::int32_t shift) const {
    Footprint footprint;
    std::vector<std::set<std::int32_t>> leaves(width_), pods(width_);  // by local index
    for (const Member& member : group_.members) {
      const int device = sites_.device_of(member.rank + shift);
      const Fabric::Standing standing = sites_.fabric().standing_of(device);
      footprint.places.insert(footprint.places.end(), {standing.leaf, standing.pod});
      leaves[device % width_].insert(standing.leaf);
      pods[device % width_].insert(standing.pod);
    }
    if (leaves_bind_) add_crossed(leaves, false, footprint);
    if (pods_bind_) add_crossed(pods, true, footprint);
    std::sort(footprint.crossed.begin(), footprint.crossed.end());
    return footprint;
  }

 private:
  static void add_crossed(const std::vector<std::set<std::int32_t>>& places, bool are_pods,
                          Footprint& footprint) {
    for (const auto& column : places) {
      if (column.size() < 2) continue;
      for (const std::int32_t place : column) footprint.crossed.push_back(are_pods ? -1 - place : place);
    }
  }

  const Sites& sites_;
  const GroupSites& group_;
  bool leaves_bind_, pods_bind_;
  int width_ = 1;
};

// Groups that share a crossed leaf or pod, directly or through others, are one set.
std::vector<std::vector<std::int32_t>> sets_of(const std::vector<Footprint>& footprints) {
  std::vector<std::int32_t> parent(footprints.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](std::int32_t at) {
    while (parent[at] != at) at = parent[at] = parent[parent[at]];
    return at;
  };
  std::unordered_map<std::int32_t, std::int32_t> user;  // of a leaf or pod: the first group
  for (std::size_t i = 0; i < footprints.size(); ++i) {
    for (const std::int32_t place : footprints[i].crossed) {
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
// the wires that stand for theirs.
std::vector<std::int32_t> shape_of(const std::vector<std::int32_t>& set,
                                   const std::vector<Footprint>& footprints, const Sites& sites) {
  std::vector<std::int32_t> shape;
  std::unordered_map<std::int32_t, std::int32_t> leaves, pods;
  for (const std::int32_t group : set) {
    const std::vector<std::int32_t>& places = footprints[group].places;
    for (std::size_t i = 0; i < places.size(); i += 2) {
      const auto leaf = static_cast<std::int32_t>(leaves.size()),
                 pod = static_cast<std::int32_t>(pods.size());
      shape.push_back(leaves.try_emplace(places[i], leaf).first->second);
      shape.push_back(sites.stand_in(WireId{WireKind::kLeafUp, places[i]}).index);
      shape.push_back(pods.try_emplace(places[i + 1], pod).first->second);
      shape.push_back(sites.stand_in(WireId{WireKind::kPodUp, places[i + 1]}).index);
    }
  }
  return shape;
}

}  // namespace

bool leaves_or_pods_bind(const Fabric& fabric) {
  return leaves_bind(fabric) || pods_bind(fabric);
}

// Members `stride` apart, n of them: groups of this kind tile runs of n * stride ranks, `stride` groups to a
// run, and index i is held by the ranks [i * stride, (i + 1) * stride) of a run.
std::vector<std::int32_t> shifts_of(const Group& group, const RankClass& of) {
  const std::vector<std::int32_t>& ranks = group.ranks;
  const std::int32_t me = of.representative();
  if (ranks.size() < 2) return {0};
  const std::int64_t stride = ranks[1] - ranks[0], run = stride * static_cast<std::int64_t>(ranks.size());
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != stride || stride <= 0) return {0};
  }
  std::vector<std::int32_t> shifts;
  const std::int64_t first = ranks.front() - ranks.front() % stride;
  for (const std::int32_t rank : of.ranks) {
    const std::int64_t in_run = ((rank - first) % run + run) % run;
    if (in_run / stride == group.my_index) shifts.push_back(rank - me);
  }
  return shifts;
}

std::vector<std::int32_t> distinct_shifts(const Sites& sites, const GroupSites& group,
                                          const std::vector<std::int32_t>& shifts) {
  if (group.nodes.size() < 2 || !leaves_or_pods_bind(sites.fabric())) return {};
  const Footprints all(sites, group);
  std::vector<Footprint> footprints;
  for (const std::int32_t shift : shifts) footprints.push_back(all.at(shift));
  std::map<std::vector<std::int32_t>, bool> seen;
  std::vector<std::int32_t> distinct;
  for (const std::vector<std::int32_t>& set : sets_of(footprints)) {
    if (!seen.try_emplace(shape_of(set, footprints, sites), true).second) continue;
    for (const std::int32_t group_index : set) distinct.push_back(shifts[group_index]);
  }
  return distinct;
}

}  // namespace moebius
