#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "hw/fabric/fabric.h"
#include "hw/fabric/uplinks.h"
#include "hw/units.h"

namespace moebius {
namespace {

constexpr std::int64_t kMostDevices = std::int64_t{1} << 24;

int nics_of(const FabricPool& pool) {
  return ceil_div(pool.devices_per_node, pool.devices_per_nic);
}

int rails_of(const FabricPool& pool) {
  return pool.rails > 0 ? pool.rails : nics_of(pool);
}

int columns_of(const FabricSpec& spec, const std::vector<FabricPool>& pools) {
  if (!spec.rail_optimised) return spec.planes;
  if (spec.rails > 0) return spec.rails;
  int rails = 1;
  for (const FabricPool& pool : pools) rails = std::max(rails, rails_of(pool));
  return rails;
}

int groups_of(const FabricLayout::PoolPlace& place, int nodes) {
  return ceil_div(place.offset + nodes, place.nodes_per_leaf) * place.leaves_per_node;
}

// A message between two rails of one plane climbs to a spine when some pool cannot forward it inside a node.
bool needs_spine(const FabricSpec& spec, const std::vector<FabricPool>& pools, const FabricLayout& layout) {
  if (layout.region_groups > 1) return true;
  const bool all_forward =
      std::all_of(pools.begin(), pools.end(), [](const FabricPool& p) { return p.forwards; });
  return layout.nodes > 1 && layout.columns > spec.planes && !all_forward;
}

int leaves_per_plane(const FabricSpec& spec, const FabricLayout& layout, int groups) {
  return groups * ceil_div(layout.columns, spec.planes);
}

int fewest_tiers(const FabricSpec& spec, const std::vector<FabricPool>& pools, const FabricLayout& layout) {
  if (!needs_spine(spec, pools, layout)) return 1;
  return leaves_per_plane(spec, layout, layout.region_groups) <= spec.switch_ports ? 2 : 3;
}

int groups_under_pod(const FabricSpec& spec, const FabricLayout& layout) {
  if (layout.tiers < 3) return std::max(1, layout.region_groups);
  if (spec.pod_leaves > 0) return spec.pod_leaves;
  return std::max(1, spec.switch_ports / 2 / ceil_div(layout.columns, spec.planes));
}

FabricLayout::PoolPlace place_after(const FabricLayout::PoolPlace& last, const FabricPool& before, int ports,
                                    const FabricPool& pool) {
  FabricLayout::PoolPlace place = last;
  place.first_device += before.nodes * before.devices_per_node;
  place.first_node += before.nodes;
  const bool same_leaves =
      ports == last.ports && pool.nic_rate == before.nic_rate && pool.region == before.region;
  const int taken = last.offset + before.nodes;
  place.first_group +=
      same_leaves ? taken / last.nodes_per_leaf * last.leaves_per_node : groups_of(last, before.nodes);
  place.offset = same_leaves ? taken % last.nodes_per_leaf : 0;
  return place;
}

// A region starts on a leaf group of a number that `align` divides, so that no pod reaches over two regions.
void place_pools(const FabricSpec& spec, const std::vector<FabricPool>& pools, int align,
                 FabricLayout& layout) {
  layout.pools.clear();
  layout.region_groups = 0;
  int first_of_region = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const FabricPool& pool = pools[i];
    const int ports = ceil_div(nics_of(pool), layout.columns);
    FabricLayout::PoolPlace place;
    if (i > 0) place = place_after(layout.pools[i - 1], pools[i - 1], ports, pool);
    if (i > 0 && pool.region != pools[i - 1].region)
      first_of_region = place.first_group = ceil_div(place.first_group, align) * align;
    place.ports = ports;
    place.nodes_per_leaf = std::max(1, spec.leaf_ports / ports);
    place.leaves_per_node = ceil_div(ports, std::max(1, spec.leaf_ports));
    layout.pools.push_back(place);
    layout.groups = place.first_group + groups_of(place, pool.nodes);
    layout.region_groups = std::max(layout.region_groups, layout.groups - first_of_region);
  }
}

std::string problem_of_pool(const FabricPool& pool, int index, const FabricLayout& layout) {
  if (pool.nodes < 1 || pool.devices_per_node < 1)
    return fmt::format("pool {} has {} nodes of {} devices: expected at least one of each", index, pool.nodes,
                       pool.devices_per_node);
  if (pool.devices_per_node > 1 && pool.link_rate.value <= 0)
    return fmt::format("the {} devices of a node of pool {} are joined by nothing", pool.devices_per_node,
                       index);
  if (layout.nodes == 1) return {};
  if (pool.nic_rate.value <= 0)
    return fmt::format("the nodes of pool {} have no NIC, so nothing can reach them", index);
  return {};
}

std::string problem_of_regions(const FabricSpec& spec, const std::vector<FabricPool>& pools) {
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const int before = i > 0 ? pools[i - 1].region : 0;
    if (pools[i].region != before && (i == 0 || pools[i].region != before + 1))
      return fmt::format(
          "pool {} stands in region {} after one in region {}: pools of one region stand together", i,
          pools[i].region, before);
  }
  if (pools.back().region > 0 && spec.region_rate.value <= 0)
    return fmt::format(
        "{} regions, but nothing joins them: expected \"region_rate\", and \"region_distance\", of the "
        "fabric",
        pools.back().region + 1);
  return {};
}

std::string problem_of_columns(const FabricSpec& spec, const std::vector<FabricPool>& pools,
                               const FabricLayout& layout) {
  int nics = 0;
  for (const FabricPool& pool : pools) nics = std::max(nics, nics_of(pool));
  if (spec.rail_optimised && layout.columns % spec.planes != 0)
    return fmt::format("{} rails cannot be spread evenly over {} planes", layout.columns, spec.planes);
  if (layout.columns > nics)
    return fmt::format("{} {}, but a node has {} {}: the rest would hang on nothing", layout.columns,
                       spec.rail_optimised ? "rails" : "planes", nics, nics == 1 ? "NIC" : "NICs");
  return {};
}

std::string problem_of_tiers(const FabricSpec& spec, const std::vector<FabricPool>& pools,
                             const FabricLayout& layout) {
  if (layout.tiers == 1 && needs_spine(spec, pools, layout))
    return layout.region_groups > 1
               ? fmt::format(
                     "one tier joins the nodes of one leaf, but {} nodes need {} leaves of {} "
                     "ports: use more "
                     "tiers or larger leaves",
                     layout.nodes, layout.region_groups, spec.leaf_ports)
               : "one tier joins each rail alone, but nodes without a scale-up link cannot "
                 "change rail: use 2 tiers";
  const int leaves = leaves_per_plane(spec, layout, layout.region_groups);
  if (layout.tiers == 2 && leaves > spec.switch_ports)
    return fmt::format(
        "two tiers: {} nodes need {} leaves in a plane, but a spine switch of {} ports joins {}: use 3 "
        "tiers, more planes or larger switches",
        layout.nodes, leaves, spec.switch_ports, spec.switch_ports);
  if (layout.tiers < 3) return {};
  const int leaves_of_pod = leaves_per_plane(spec, layout, layout.pod_groups);
  if (leaves_of_pod > spec.switch_ports)
    return fmt::format("{} leaves of a plane under one pod, but a spine switch of {} ports joins {}",
                       leaves_of_pod, spec.switch_ports, spec.switch_ports);
  const int pods = ceil_div(layout.region_groups, layout.pod_groups);
  const double up = count_of_uplinks(spec.spine_uplinks, leaves_of_pod, spec.core_oversubscription);
  if (pods > 1 && leaves_of_pod + up > spec.switch_ports)
    return fmt::format(
        "{} leaves of a plane under one pod and {:.0f} uplinks to the core, but a spine switch has {} ports: "
        "use smaller pods (pod_leaves), more planes or larger switches",
        leaves_of_pod, up, spec.switch_ports);
  if (pods > spec.switch_ports)
    return fmt::format(
        "three tiers: {} nodes need {} pods, but a core switch of {} ports joins {}: use more planes or "
        "larger switches",
        layout.nodes, pods, spec.switch_ports, spec.switch_ports);
  return {};
}

// Ports are numbered through all leaves, and all pods.
std::string problem_of_uplinks(const FabricSpec& spec, const FabricLayout& layout) {
  constexpr double kMostUplinks = 65536, kMostPorts = 2147483647;
  const double leaf =
      spec.nic_ports * count_of_uplinks(spec.leaf_uplinks, spec.leaf_ports, spec.oversubscription);
  if (leaf > kMostUplinks)
    return fmt::format("{:.6g} uplinks of a leaf: expected at most {:.0f}", leaf, kMostUplinks);
  const double leaves = 1.0 * layout.groups * layout.columns;
  const double spine = count_of_uplinks(spec.spine_uplinks, leaves_per_plane(spec, layout, layout.pod_groups),
                                        spec.core_oversubscription);
  if (spine > kMostUplinks)
    return fmt::format("{:.6g} uplinks of a spine: expected at most {:.0f}", spine, kMostUplinks);
  const double pods = 1.0 * ceil_div(layout.groups, layout.pod_groups) * spec.planes;
  const double ports = std::max(leaves * leaf, layout.tiers < 3 ? 0 : pods * leaf * spine);
  if (ports > kMostPorts)
    return fmt::format("{:.6g} ports of switches between tiers: expected at most {:.0f}", ports, kMostPorts);
  return {};
}

// Sizes are bounded, so that a fabric's numbers of packets and calendars are.
std::string problem_of_transport(const PacketTransport& transport) {
  if (transport.ideal) return {};
  if (transport.packet > 1e6)
    return fmt::format("packets of {:.0f} B: expected at most 1 MB", transport.packet);
  if (transport.header >= transport.packet)
    return fmt::format("a header of {:.0f} B: expected less than the packet of {:.0f} B", transport.header,
                       transport.packet);
  if (transport.efficiency() > 1)
    return fmt::format("pulls of {:.0f} B every {:.0f} B: more than a link carries", transport.credit,
                       transport.pull_spacing);
  if (transport.efficiency() < 0.01)
    return fmt::format(
        "pulls of {:.0f} B every {:.0f} B: expected at least a hundredth of what a link carries",
        transport.credit, transport.pull_spacing);
  if (transport.window > 65536 || transport.queue > 65536 || transport.entropies > 65536)
    return "a window, a queue and entropies: expected at most 65536 of each";
  return {};
}

std::string problem_of_ranges(const FabricSpec& spec) {
  if (auto problem = problem_of_transport(spec.transport); !problem.empty()) return problem;
  if (spec.tiers < kAutomaticTiers || spec.tiers > 3)
    return fmt::format("{} tiers: expected 0 to 3", spec.tiers);
  if (spec.planes < 1) return fmt::format("{} planes: expected at least 1", spec.planes);
  if (spec.nic_ports < 1) return fmt::format("{} ports of a NIC: expected at least 1", spec.nic_ports);
  if (spec.rails < 0) return fmt::format("{} rails: expected at least 0", spec.rails);
  if (!(spec.oversubscription > 0) || !(spec.core_oversubscription > 0))
    return "an oversubscription of zero or less: expected down capacity / up capacity, 1 for none";
  return {};
}

std::int64_t count_devices(const std::vector<FabricPool>& pools) {
  std::int64_t devices = 0;
  for (const FabricPool& pool : pools) devices += std::int64_t{pool.nodes} * pool.devices_per_node;
  return devices;
}

}  // namespace

FabricLayout lay_out(const FabricSpec& spec, const std::vector<FabricPool>& pools) {
  FabricLayout layout;
  layout.columns = columns_of(spec, pools);
  for (const FabricPool& pool : pools) {
    layout.nodes += pool.nodes;
    layout.devices += pool.nodes * pool.devices_per_node;
  }
  layout.regions = pools.back().region + 1;
  place_pools(spec, pools, 1, layout);
  layout.tiers = spec.tiers != kAutomaticTiers ? spec.tiers
                 : layout.nodes == 1           ? 0
                                               : fewest_tiers(spec, pools, layout);
  layout.pod_groups = groups_under_pod(spec, layout);
  if (layout.regions > 1) place_pools(spec, pools, layout.pod_groups, layout);
  return layout;
}

std::string problem_of(const FabricSpec& spec, const std::vector<FabricPool>& pools,
                       const FabricLayout& layout) {
  if (layout.nodes > 1 && layout.tiers == 0)
    return fmt::format("a \"{}\" fabric joins no nodes, but the cluster has {}", spec.type, layout.nodes);
  if (layout.nodes > 1 && (spec.leaf_ports < 1 || spec.switch_ports < 1))
    return fmt::format("leaves of {} ports below switches of {}: expected at least 1", spec.leaf_ports,
                       spec.switch_ports);
  for (std::size_t i = 0; i < pools.size(); ++i)
    if (auto problem = problem_of_pool(pools[i], static_cast<int>(i), layout); !problem.empty())
      return problem;
  if (layout.nodes == 1) return {};
  if (auto problem = problem_of_columns(spec, pools, layout); !problem.empty()) return problem;
  if (auto problem = problem_of_uplinks(spec, layout); !problem.empty()) return problem;
  return problem_of_tiers(spec, pools, layout);
}

std::string Fabric::problem(const FabricSpec& spec, const std::vector<FabricPool>& pools) {
  if (pools.empty()) return "the cluster has no pool of nodes";
  if (auto problem = problem_of_ranges(spec); !problem.empty()) return problem;
  for (const FabricPool& pool : pools)
    if (pool.nodes < 1 || pool.devices_per_node < 1 || pool.devices_per_nic < 1)
      return fmt::format("a pool of {} nodes of {} devices, {} to a NIC: expected at least one of each",
                         pool.nodes, pool.devices_per_node, pool.devices_per_nic);
  if (count_devices(pools) > kMostDevices)
    return fmt::format("{} devices: expected at most {}", count_devices(pools), kMostDevices);
  if (auto problem = problem_of_regions(spec, pools); !problem.empty()) return problem;
  return problem_of(spec, pools, lay_out(spec, pools));
}

}  // namespace moebius
