// Which switches and ports there are, and on which of them a device hangs.
#include "hw/fabric/fabric.h"

namespace moebius {

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

Fabric::Gates Fabric::gates(int from, int to) const {
  const Crossing way = crossing(site_of(from), site_of(to), RailChange::kInNode);
  return {way.sender.device, way.receiver.device};
}

}  // namespace moebius
