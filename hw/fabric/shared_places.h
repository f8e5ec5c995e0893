// The places whose way to the outside is shared by all that stands in them, from the leaf upwards, and the
// host memory that forwarded messages go through.
#pragma once

#include <cstdint>

#include "hw/fabric/fabric.h"

namespace moebius {

enum class SharedPlace : std::uint8_t { kLeaf, kPod, kRegion, kHost };
inline constexpr int kNumSharedPlaces = static_cast<int>(SharedPlace::kHost) + 1;

// Whether messages that leave or enter such places can wait for each other there.
bool can_bind(const Fabric& fabric, SharedPlace place);

}  // namespace moebius
