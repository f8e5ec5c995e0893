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
//
// What a board draws for the same work differs too. That shows where boards are at their power limit: those
// that draw more go at a lower clock. Of those that wait for each other the one that draws most sets the pace
// (`limited_by_hungriest`, workloads/cost/clock_power.h). 8% lie between the fast and the slow of like GPUs
// of five machines, outliers aside (Sinha et al., "Not All GPUs Are Created Equal", SC22, arXiv 2208.11035).
// With whiskers of a box plot as the ends, 5.4 standard deviations apart, that is 1.5% of the time; at the
// limit the clock goes with the cube root of the energy.
struct SpeedVariation {
  static constexpr double kPower = 0.044;

  SpeedLaw law = SpeedLaw::kNormal;
  double sigma = 0;
  std::vector<SlowDevice> slow = {};  // these have the speed that is said instead

  double power = kPower;  // standard deviation, against the mean

  bool any() const { return sigma > 0 || !slow.empty(); }
};

}  // namespace moebius
