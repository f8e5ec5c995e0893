#include "hw/fault.h"

#include <algorithm>

#include <fmt/format.h>

namespace moebius {

std::string_view to_string(FaultKind kind) {
  constexpr std::string_view kNames[] = {"link-down", "link-degraded", "link-flap",
                                         "nic-down",  "switch-down",   "slow-node"};
  return kNames[static_cast<int>(kind)];
}

std::string place_of(const Fault& fault) {
  if (fault.kind == FaultKind::kSlowNode) return fmt::format("node {}", fault.node);
  const PartHealth& part = fault.part;
  switch (part.part) {
    case FabricPart::kLeaf:
      return fmt::format("leaf {}", part.index);
    case FabricPart::kLeafUplink:
      return fmt::format("leaf {} uplink {}", part.index, part.uplink);
    case FabricPart::kSpine:
      return fmt::format("spine {}", part.index);
    case FabricPart::kSpineUplink:
      return fmt::format("spine {} uplink {}", part.index, part.uplink);
    case FabricPart::kNic:
      return fmt::format("NIC of device {}", part.index);
  }
  return {};
}

bool FaultPlan::in_network() const {
  return std::any_of(faults.begin(), faults.end(),
                     [](const Fault& fault) { return fault.kind != FaultKind::kSlowNode; });
}

}  // namespace moebius
