// Chips of one kind that do not run equally fast: silicon, cooling and power differ from one to the next.
#pragma once

#include <cstdint>
#include <vector>

namespace moebius {

enum class SpeedLaw : std::uint8_t { kNormal, kLogNormal };

struct SlowDevice {
  std::int32_t device = 0;
  double speed = 1;  // of what others of its kind do
};

// Each device's speed is drawn once for a run: 1 + sigma * z, or exp(sigma * z), with z normal.
struct SpeedVariation {
  SpeedLaw law = SpeedLaw::kNormal;
  double sigma = 0;
  std::vector<SlowDevice> slow = {};  // these have the speed that is said instead

  bool any() const { return sigma > 0 || !slow.empty(); }
};

}  // namespace moebius
