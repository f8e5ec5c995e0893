// Which parts of a fabric are broken or slowed, and what that leaves of each of its ports. Routes are chosen
// around what is broken (sim/traffic/flow_paths.h); it may change while a run goes on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hw/fabric/fabric.h"

namespace moebius {

// A leaf and all NICs on it; one of its uplinks; a spine (as Fabric::spine_of() numbers them) and all its
// links; its link to one core switch; a NIC, by a device that it serves.
enum class FabricPart : std::uint8_t { kLeaf, kLeafUplink, kSpine, kSpineUplink, kNic };

struct PartHealth {
  FabricPart part = FabricPart::kLeaf;
  std::int32_t index = 0;   // of the leaf, spine or device
  std::int32_t uplink = 0;  // of a link
  double capacity = 0;      // share that is left, both ways; 0: broken
  auto operator<=>(const PartHealth&) const = default;
};

// Why a part is none of the fabric, or nothing: "leaf 9: expected 0 to 7".
std::string problem_of(const PartHealth& part, const Fabric& fabric);
// Whatever is left of it; a NIC is one part by each device that it serves.
bool same_part(const PartHealth& a, const PartHealth& b, const Fabric& fabric);

class PathHealth {
 public:
  PathHealth(const Fabric& fabric, const std::vector<PartHealth>& parts);

  void set(const PartHealth& part);  // capacity 1: whole again
  bool all_whole() const { return left_.empty(); }
  int damaged() const { return static_cast<int>(left_.size()); }  // parts
  // Share of a port's nominal capacity that is left: 1 for wires that are no port (scale-up links, bundles).
  double share(WireId wire) const;

 private:
  double left(FabricPart part, int index, int uplink) const;
  double share_of_nic(int device) const;
  double share_of_leaf_port(int port) const;
  double share_of_pod_port(int port) const;

  const Fabric& fabric_;
  std::map<PartHealth, double> left_;  // keys with capacity 0; values below 1
};

}  // namespace moebius
