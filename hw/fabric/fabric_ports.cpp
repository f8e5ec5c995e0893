// Which switches and ports there are, and on which of them a device hangs.
#include <algorithm>

#include "hw/fabric/fabric.h"

namespace moebius {
namespace {

// Leaves with nodes on them, by pod.
std::vector<std::int64_t> leaves_of_pods(const Fabric& fabric) {
  const FabricLayout& layout = fabric.layout();
  std::vector<int> columns(layout.groups, 0);  // in use, by group
  for (std::size_t i = 0; i < layout.pools.size(); ++i) {
    const FabricPool& pool = fabric.pools()[i];
    const FabricLayout::PoolPlace& place = layout.pools[i];
    const int used = std::min(layout.columns, ceil_div(pool.devices_per_node, pool.devices_per_nic));
    const int groups = ceil_div(place.offset + pool.nodes, place.nodes_per_leaf) * place.leaves_per_node;
    for (int group = place.first_group; group < place.first_group + groups; ++group)
      columns[group] = std::max(columns[group], used);
  }
  std::vector<std::int64_t> leaves(fabric.num_pods(), 0);
  for (int group = 0; group < layout.groups; ++group) {
    for (int column = 0; column < columns[group]; ++column)
      ++leaves[fabric.pod_of_leaf(group * layout.columns + column)];
  }
  return leaves;
}

}  // namespace

int Fabric::num_leaves() const {
  return layout_.groups * layout_.columns;
}

int Fabric::num_pods() const {
  return ceil_div(layout_.groups, layout_.pod_groups) * spec_.planes;
}

int Fabric::leaf_of(int device) const {
  return leaf_of(site_of(device));
}

int Fabric::nic_of(int device) const {
  return nic_of(site_of(device));
}

int Fabric::pod_of_leaf(int leaf) const {
  const int group = leaf / layout_.columns, column = leaf % layout_.columns;
  return group / layout_.pod_groups * spec_.planes + column % spec_.planes;
}

std::vector<int> Fabric::count_spines() const {
  std::vector<int> first{0};
  if (layout_.tiers < 2) {
    first.resize(num_pods() + 1, 0);
    return first;
  }
  const int twins = spec_.nic_ports, uplinks = leaf_uplinks_ / twins;
  for (const std::int64_t leaves : leaves_of_pods(*this)) {
    // Each leaf has as many links to a spine as its ports hold of all leaves.
    const auto links =
        static_cast<int>(std::max<std::int64_t>(1, spec_.switch_ports / std::max<std::int64_t>(1, leaves)));
    const int of_twin = layout_.tiers == 3 ? uplinks : ceil_div(uplinks, links);
    first.push_back(first.back() + twins * of_twin);
  }
  return first;
}

// Uplinks u of twin u % twins; its spines are numbered so too.
int Fabric::spine_of(int leaf, int uplink) const {
  const int pod = pod_of_leaf(leaf), twins = spec_.nic_ports;
  const int of_twin = spines_of_pod(pod) / twins, uplinks = leaf_uplinks_ / twins;
  return first_spine_[pod] + uplink / twins * of_twin / uplinks * twins + uplink % twins;
}

// A node's ports of one column stand side by side; a super-node's are spread evenly over its leaves.
int Fabric::leaf_port(int device) const {
  const Site site = site_of(device);
  const FabricLayout::PoolPlace& place = layout_.pools[site.pool];
  const int of_column = site.local / pools_[site.pool].devices_per_nic / layout_.columns;
  if (place.leaves_per_node > 1) {
    const int leaf = of_column * place.leaves_per_node / place.ports;
    return of_column - (leaf * place.ports + place.leaves_per_node - 1) / place.leaves_per_node;
  }
  const int node = place.offset + site.node - place.first_node;
  return node % place.nodes_per_leaf * place.ports + of_column;
}

Fabric::Gates Fabric::gates(int from, int to, RailChange change) const {
  const Crossing way = crossing(site_of(from), site_of(to), change);
  return {way.sender.device, way.receiver.device};
}

}  // namespace moebius
