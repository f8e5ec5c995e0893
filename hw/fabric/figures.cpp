#include "hw/fabric/figures.h"

#include <algorithm>
#include <map>
#include <set>

#include "hw/units.h"

namespace moebius {
namespace {

// What stands in a fabric: leaves and pods in use, by plane and region.
struct Inventory {
  std::set<int> leaves;
  std::map<int, std::set<int>> leaves_of_pod;
  std::map<std::pair<int, int>, std::set<int>> pods_of_plane;  // (region, plane)
};

Inventory inventory_of(const Fabric& fabric) {
  Inventory all;
  int nic = -1;
  for (int device = 0; device < fabric.num_devices(); ++device) {
    const Fabric::Standing at = fabric.standing(device);
    if (at.nic == nic) continue;
    nic = at.nic;
    all.leaves.insert(at.leaf);
    all.leaves_of_pod[at.pod].insert(at.leaf);
    all.pods_of_plane[{at.region, at.pod % fabric.spec().planes}].insert(at.pod);
  }
  return all;
}

SwitchTier leaves_of(const Fabric& fabric, const Inventory& all) {
  const FabricSpec& spec = fabric.spec();
  const int twins = spec.nic_ports, leaf = *all.leaves.begin();
  SwitchTier tier{"leaf", static_cast<std::int64_t>(all.leaves.size()) * twins, spec.leaf_ports, 0, {}, {}};
  tier.down_rate = fabric.capacity({WireKind::kNicOutPort, 0});
  if (spec.tiers < 2) return tier;
  tier.up = fabric.leaf_uplinks() / twins;
  tier.up_rate = fabric.capacity({WireKind::kLeafUpPort, leaf * fabric.leaf_uplinks()});
  return tier;
}

SwitchTier spines_of(const Fabric& fabric, const Inventory& all) {
  const FabricSpec& spec = fabric.spec();
  const int twins = spec.nic_ports, uplinks = fabric.leaf_uplinks() / twins;
  SwitchTier tier{"spine", 0, 0, 0, fabric.capacity({WireKind::kLeafUpPort, 0}), {}};
  for (const auto& [pod, leaves] : all.leaves_of_pod) {
    const auto count = static_cast<std::int64_t>(leaves.size());
    const std::int64_t of_twin = fabric.spines_of_pod(pod) / twins;
    tier.switches += twins * of_twin;
    tier.down = std::max(tier.down, static_cast<int>(ceil_div(count * uplinks, of_twin)));
  }
  if (spec.tiers < 3) return tier;
  tier.up = fabric.spine_uplinks();
  tier.up_rate = fabric.capacity({WireKind::kPodUpPort, 0});
  return tier;
}

SwitchTier cores_of(const Fabric& fabric, const Inventory& all) {
  const FabricSpec& spec = fabric.spec();
  const int twins = spec.nic_ports, uplinks = fabric.leaf_uplinks() / twins;
  SwitchTier tier{"core", 0, 0, 0, fabric.capacity({WireKind::kPodUpPort, 0}), {}};
  for (const auto& [plane, pods] : all.pods_of_plane) {
    if (pods.size() < 2) continue;
    const std::int64_t links =
        std::int64_t{1} * static_cast<int>(pods.size()) * uplinks * fabric.spine_uplinks();
    const std::int64_t of_twin = ceil_div(links, spec.switch_ports);
    tier.switches += twins * of_twin;
    tier.down = std::max(tier.down, static_cast<int>(ceil_div(links, of_twin)));
  }
  return tier;
}

// One half's and the other's traffic at one bundle of a tree: what turns round there and what goes on.
struct Cut {
  double from = 0, to = 0;  // still to go up, still to come down
  void pass(double& turned, double trunk) {
    const double here = std::min(from, to);
    turned += here;
    from = std::min(from - here, trunk);
    to = std::min(to - here, trunk);
  }
};

std::map<int, Cut> nics_below_leaves(const Fabric& fabric, int split) {
  std::map<int, Cut> cuts;
  int nic = -1;
  for (int device = 0; device < fabric.num_devices(); ++device) {
    const Fabric::Standing at = fabric.standing(device);
    if (at.nic == nic) continue;
    nic = at.nic;
    Cut& cut = cuts[at.leaf];
    (at.node < split ? cut.from : cut.to) += fabric.capacity({WireKind::kNicOut, nic}).value;
  }
  return cuts;
}

void merge(Cut& into, const Cut& cut) {
  into.from += cut.from;
  into.to += cut.to;
}

// Between regions: what is left at the top of each, as the links between two of them carry it.
// NOLINTNEXTLINE(performance-unnecessary-value-param): the cuts of this copy are used up
double over_regions(std::map<int, Cut> tops, double link) {
  double passed = 0;
  for (auto& [a, from] : tops) {
    for (auto& [b, to] : tops) {
      if (a == b) continue;
      const double here = std::min({from.from, to.to, link});
      passed += here;
      from.from -= here;
      to.to -= here;
    }
  }
  return passed;
}

struct LeafPlace {
  int pod = 0, region = 0;
};

std::map<int, LeafPlace> places_of_leaves(const Fabric& fabric) {
  std::map<int, LeafPlace> places;
  for (int device = 0; device < fabric.num_devices(); ++device) {
    const Fabric::Standing at = fabric.standing(device);
    places[at.leaf] = {at.pod, at.region};
  }
  return places;
}

void add_way(const Fabric& fabric, int to, std::vector<Way>& ways) {
  Way way{fabric.distance(0, to), false, 0, to, fabric.switches(0, to), fabric.num_paths(0, to),
          fabric.latency(0, to)};
  way.changes_rail = way.switches > 0 && fabric.over_nics(0, to) != std::pair(0, fabric.standing(to).nic);
  const auto same = [&](const Way& other) {
    return other.distance == way.distance && other.changes_rail == way.changes_rail;
  };
  if (way.distance != Distance::kSelf && std::none_of(ways.begin(), ways.end(), same)) ways.push_back(way);
}

// To the devices of the first two nodes, and to the first of every node.
std::vector<Way> ways_of(const Fabric& fabric) {
  std::vector<Way> ways;
  int node = -1;
  for (int to = 0; to < fabric.num_devices(); ++to) {
    const int its = fabric.node_of(to);
    if (its > 1 && its == node) continue;
    node = its;
    add_way(fabric, to, ways);
  }
  std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
    return std::pair(a.distance, a.changes_rail) < std::pair(b.distance, b.changes_rail);
  });
  return ways;
}

}  // namespace

ByteRate cut_rate(const Fabric& fabric, int split) {
  const FabricSpec& spec = fabric.spec();
  const std::map<int, LeafPlace> places = places_of_leaves(fabric);
  double passed = 0;
  std::map<std::pair<int, int>, Cut> pods;  // (region, pod)
  for (auto& [leaf, cut] : nics_below_leaves(fabric, split)) {
    Cut here = cut;
    here.pass(passed,
              spec.tiers >= 2 ? fabric.capacity({WireKind::kLeafUp, leaf}).value : here.from + here.to);
    merge(pods[{places.at(leaf).region, places.at(leaf).pod}], here);
  }
  std::map<int, Cut> tops;                    // by region
  std::map<std::pair<int, int>, Cut> planes;  // (region, plane): pods meet in the cores of their plane
  for (auto& [key, cut] : pods) {
    Cut here = cut;
    if (spec.tiers >= 2)
      here.pass(passed, spec.tiers == 3 ? fabric.capacity({WireKind::kPodUp, key.second}).value
                                        : here.from + here.to);
    merge(planes[{key.first, key.second % spec.planes}], here);
  }
  for (auto& [key, cut] : planes) {
    Cut here = cut;
    if (spec.tiers == 3) here.pass(passed, here.from + here.to);
    merge(tops[key.first], here);
  }
  if (fabric.num_regions() == 1) return {passed};
  return {passed + over_regions(tops, fabric.capacity({WireKind::kRegionLink, 0}).value)};
}

FabricFigures figures_of(const Fabric& fabric) {
  FabricFigures figures;
  const FabricSpec& spec = fabric.spec();
  figures.ways = ways_of(fabric);
  const int nodes = fabric.layout().nodes;
  if (nodes < 2) return figures;
  const Inventory all = inventory_of(fabric);
  figures.tiers.push_back(leaves_of(fabric, all));
  if (spec.tiers >= 2) figures.tiers.push_back(spines_of(fabric, all));
  if (spec.tiers == 3) figures.tiers.push_back(cores_of(fabric, all));
  figures.oversubscription =
      (spec.tiers >= 2 ? spec.oversubscription : 1) * (spec.tiers == 3 ? spec.core_oversubscription : 1);
  figures.bisection = cut_rate(fabric, nodes / 2);
  for (const auto& [leaf, cut] : nics_below_leaves(fabric, nodes / 2))
    figures.half_nics += ByteRate{cut.from};
  return figures;
}

int most_nodes(FabricSpec spec, FabricPool pool, int tiers) {
  constexpr int kMost = 1 << 20;
  spec.tiers = tiers;
  const auto fits = [&](int nodes) {
    pool.nodes = nodes;
    return Fabric::problem(spec, {pool}).empty();
  };
  if (!fits(1)) return 0;
  int low = 1, high = kMost + 1;  // low fits, high does not
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace moebius
