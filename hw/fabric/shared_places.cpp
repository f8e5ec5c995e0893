#include "hw/fabric/shared_places.h"

namespace moebius {

bool can_bind(const Fabric& fabric, SharedPlace place) {
  switch (place) {
    case SharedPlace::kLeaf:
      return fabric.can_bind(WireKind::kLeafUp) || fabric.can_bind(WireKind::kLeafDown);
    case SharedPlace::kPod:
      return fabric.can_bind(WireKind::kPodUp) || fabric.can_bind(WireKind::kPodDown);
    case SharedPlace::kRegion:
      return fabric.can_bind(WireKind::kRegionLink);
    case SharedPlace::kHost:
      return fabric.can_bind(WireKind::kHostMemory);
  }
  return true;
}

}  // namespace moebius
