#include "hw/fabric/path_health.h"

#include <algorithm>

#include <fmt/format.h>

namespace moebius {
namespace {

std::string outside(std::string_view what, int index, int count) {
  if (index >= 0 && index < count) return {};
  return fmt::format("{} {}: expected 0 to {}", what, index, count - 1);
}

std::string problem_of_spine(int spine, const Fabric& fabric) {
  if (fabric.num_spines() == 0) return fmt::format("spine {}: the network has none", spine);
  return outside("spine", spine, fabric.num_spines());
}

std::string problem_of_leaf_uplink(int uplink, const Fabric& fabric) {
  if (fabric.num_spines() == 0) return fmt::format("uplink {}: leaves of one tier have none", uplink);
  return outside("uplink", uplink, fabric.leaf_uplinks());
}

std::string problem_of_spine_uplink(int uplink, const Fabric& fabric) {
  if (fabric.spec().tiers == 2) return fmt::format("uplink {}: the spines of two tiers have none", uplink);
  return outside("uplink", uplink, fabric.spine_uplinks());
}

// As it is known whatever is left of it.
PartHealth key_of(PartHealth part, const Fabric& fabric) {
  part.capacity = 0;
  if (part.part == FabricPart::kNic) part.index = fabric.nic_of(part.index);
  return part;
}

}  // namespace

std::string problem_of(const PartHealth& part, const Fabric& fabric) {
  switch (part.part) {
    case FabricPart::kLeaf:
      return outside("leaf", part.index, fabric.num_leaves());
    case FabricPart::kLeafUplink: {
      const std::string leaf = outside("leaf", part.index, fabric.num_leaves());
      return leaf.empty() ? problem_of_leaf_uplink(part.uplink, fabric) : leaf;
    }
    case FabricPart::kSpine:
      return problem_of_spine(part.index, fabric);
    case FabricPart::kSpineUplink: {
      const std::string spine = problem_of_spine(part.index, fabric);
      return spine.empty() ? problem_of_spine_uplink(part.uplink, fabric) : spine;
    }
    case FabricPart::kNic:
      return outside("the NIC of device", part.index, fabric.num_devices());
  }
  return {};
}

bool same_part(const PartHealth& a, const PartHealth& b, const Fabric& fabric) {
  return key_of(a, fabric) == key_of(b, fabric);
}

PathHealth::PathHealth(const Fabric& fabric, const std::vector<PartHealth>& parts) : fabric_(fabric) {
  for (const PartHealth& part : parts) set(part);
}

void PathHealth::set(const PartHealth& part) {
  const PartHealth key = key_of(part, fabric_);
  if (part.capacity < 1) {
    left_[key] = part.capacity;
  } else {
    left_.erase(key);
  }
}

double PathHealth::left(FabricPart part, int index, int uplink) const {
  const auto found = left_.find({part, index, uplink, 0});
  return found == left_.end() ? 1 : found->second;
}

double PathHealth::share_of_nic(int device) const {
  return std::min(left(FabricPart::kNic, device, 0), left(FabricPart::kLeaf, fabric_.leaf_of(device), 0));
}

double PathHealth::share_of_leaf_port(int port) const {
  const int leaf = port / fabric_.leaf_uplinks(), uplink = port % fabric_.leaf_uplinks();
  return std::min({left(FabricPart::kLeaf, leaf, 0), left(FabricPart::kLeafUplink, leaf, uplink),
                   left(FabricPart::kSpine, fabric_.spine_of(leaf, uplink), 0)});
}

double PathHealth::share_of_pod_port(int port) const {
  const int spine = port / fabric_.spine_uplinks(), uplink = port % fabric_.spine_uplinks();
  return std::min(left(FabricPart::kSpine, spine, 0), left(FabricPart::kSpineUplink, spine, uplink));
}

double PathHealth::share(WireId wire) const {
  if (left_.empty()) return 1;
  switch (wire.kind) {
    case WireKind::kNicOut:
    case WireKind::kNicIn:
      return share_of_nic(wire.index);
    case WireKind::kNicOutPort:
    case WireKind::kNicInPort:
      return share_of_nic(wire.index / fabric_.spec().nic_ports);
    case WireKind::kLeafUpPort:
    case WireKind::kLeafDownPort:
      return share_of_leaf_port(wire.index);
    case WireKind::kPodUpPort:
    case WireKind::kPodDownPort:
      return share_of_pod_port(wire.index);
    case WireKind::kScaleUpOut:
    case WireKind::kScaleUpIn:
    case WireKind::kScaleUpPair:
    case WireKind::kBoardOut:
    case WireKind::kBoardIn:
    case WireKind::kLeafUp:
    case WireKind::kLeafDown:
    case WireKind::kPodUp:
    case WireKind::kPodDown:
    case WireKind::kRegionLink:
    case WireKind::kHostOut:
    case WireKind::kHostIn:
    case WireKind::kHostMemory:
      return 1;
  }
  return 1;
}

}  // namespace moebius
