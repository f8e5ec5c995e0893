// What the wires of a fabric carry, and which of them can be a bottleneck at all.
#include <algorithm>

#include "hw/fabric/fabric.h"

namespace moebius {

int Fabric::pool_of_group(int group) const {
  int pool = static_cast<int>(pools_.size()) - 1;
  while (pool > 0 && layout_.pools[pool].first_group > group) --pool;
  return pool;
}

// All ports of a leaf are wired, whether or not a node hangs on each.
ByteRate Fabric::leaf_uplink(int group) const {
  return pools_[pool_of_group(group)].nic_rate * spec_.leaf_ports / spec_.oversubscription;
}

// Of each pool in turn that has leaves under the pod; those that no node hangs on are wired as the ones
// before.
template <typename Visit>
void Fabric::each_pool_under(int first_group, const Visit& visit) const {
  const int end = first_group + layout_.pod_groups;
  for (int group = first_group; group < end;) {
    const int pool = pool_of_group(group);
    int next = end;
    if (pool + 1 < static_cast<int>(pools_.size()))
      next = std::clamp(layout_.pools[pool + 1].first_group, group + 1, end);
    visit(pool, next - group);
    group = next;
  }
}

ByteRate Fabric::pod_uplink(int first_group) const {
  const int columns = std::max(1, layout_.columns / spec_.planes);
  ByteRate from_leaves{};
  each_pool_under(first_group, [&](int pool, int groups) {
    from_leaves += leaf_uplink(layout_.pools[pool].first_group) * (groups * columns);
  });
  return from_leaves / spec_.core_oversubscription;
}

ByteRate Fabric::capacity(WireId wire) const {
  switch (wire.kind) {
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
      return pools_[site_of(wire.index).pool].link_rate;
    case WireKind::kScaleUpPair:
      return pools_[site_of(wire.index / mesh_stride_).pool].pair_rate;
    case WireKind::kBoardOut:
    case WireKind::kBoardIn:
      return pools_[site_of(wire.index).pool].board_rate;
    case WireKind::kNicOut:
    case WireKind::kNicIn:
      return pools_[site_of(wire.index).pool].nic_rate;
    case WireKind::kNicOutPort:
    case WireKind::kNicInPort:
      return pools_[site_of(wire.index / spec_.nic_ports).pool].nic_rate / spec_.nic_ports;
    case WireKind::kHostOut:
    case WireKind::kHostIn:
      return pools_[site_of(wire.index).pool].host_rate;
    case WireKind::kHostMemory:
      return pools_[site_of(wire.index).pool].host_memory_rate;
    case WireKind::kRegionLink:
      return spec_.region_rate * spec_.transport_efficiency;
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
      return leaf_uplink(wire.index / layout_.columns);
    case WireKind::kPodUp:
    case WireKind::kPodDown:
      return pod_uplink(wire.index / spec_.planes * layout_.pod_groups);
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:
      return capacity({WireKind::kLeafUp, wire.index / leaf_uplinks_}) / leaf_uplinks_;
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort: {
      const int ports = leaf_uplinks_ * spine_uplinks_;
      return capacity({WireKind::kPodUp, wire.index / ports}) / ports;
    }
  }
  return {};
}

// A leaf's trunk carries at most what the NICs below it send or receive.
bool Fabric::leaves_can_bind() const {
  if (layout_.tiers < 2 || layout_.nodes == 1) return false;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    const auto& place = layout_.pools[i];
    const int of_one_node = ceil_div(place.ports, place.leaves_per_node);
    const int ports = std::min(place.nodes_per_leaf, layout_.nodes) * of_one_node;
    if (pools_[i].nic_rate * ports > leaf_uplink(place.first_group)) return true;
  }
  return false;
}

bool Fabric::pods_in_use() const {
  return layout_.tiers == 3 && (layout_.region_groups > layout_.pod_groups || layout_.regions > 1);
}

// A pod's trunk carries at most what its leaves' trunks carry, and what the NICs below send.
bool Fabric::pods_can_bind() const {
  if (!pods_in_use()) return false;
  const int columns = std::max(1, layout_.columns / spec_.planes);
  for (int first = 0; first < layout_.groups; first += layout_.pod_groups) {
    ByteRate from_nics{}, from_leaves{};
    each_pool_under(first, [&](int pool, int groups) {
      const auto& place = layout_.pools[pool];
      const double under_pod = 1.0 * groups * place.nodes_per_leaf / place.leaves_per_node;
      const double nodes = std::min(under_pod, 1.0 * layout_.nodes);
      from_nics += pools_[pool].nic_rate * (nodes * place.ports * columns);
      from_leaves += leaf_uplink(place.first_group) * (1.0 * columns * groups);
    });
    if (std::min(from_nics, from_leaves) > pod_uplink(first)) return true;
  }
  return false;
}

bool Fabric::can_bind(WireKind kind) const {
  const auto some = [&](auto condition) { return std::any_of(pools_.begin(), pools_.end(), condition); };
  switch (kind) {
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
      return some([](const FabricPool& p) { return p.devices_per_node > 1 && p.pair_rate.value <= 0; });
    case WireKind::kScaleUpPair:
      return some([](const FabricPool& p) { return p.devices_per_node > 1 && p.pair_rate.value > 0; });
    case WireKind::kBoardOut:
    case WireKind::kBoardIn:
      return some([](const FabricPool& p) { return p.boards() > 1 && p.board_rate < p.link_rate; });
    case WireKind::kNicOut:
    case WireKind::kNicIn:
    case WireKind::kNicOutPort:
    case WireKind::kNicInPort:
      return layout_.nodes > 1;
    case WireKind::kHostOut:
    case WireKind::kHostIn:
    case WireKind::kHostMemory:
      return !spec_.by_host.empty();
    case WireKind::kRegionLink:
      return layout_.regions > 1;
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
      return leaves_can_bind();
    case WireKind::kPodUp:
    case WireKind::kPodDown:
      return pods_can_bind();
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:  // even uplinks without oversubscription are full when two flows meet on a
                                   // port
      return layout_.tiers >= 2 && layout_.nodes > 1;
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort:
      return pods_in_use();
  }
  return true;
}

}  // namespace moebius
