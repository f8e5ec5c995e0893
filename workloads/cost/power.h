// What the board draws while an op runs, from the energies of its profile (ProfilePower).
#pragma once

#include <vector>

#include "hw/profile.h"
#include "workloads/cost/cost_source.h"

namespace moebius {

// Of a board's limit, for products: leakage, memory and the rest take about 15% (AIConfigurator's power
// tables, H200 and B200: 120 W of 700 and 245 W of 1000 beside short kernels).
inline constexpr double kShareOfProducts = 0.85;

// Watts that the chip's board may draw: the profile's limit where that is of this chip with the power that it
// had then, or where none is stated; else its own.
double board_limit(const Accelerator& chip, const Profile& profile);

// The first one that knows what its board draws; null: none does.
const Profile* profile_with_power(const std::vector<Profile>& profiles);

// Full clock of a chip over that of the profile's: 1 for that chip itself, also one that a scenario changes.
double full_clock_ratio(const Accelerator& chip, const Profile& profile);

// What the profile's energies are on a chip. One that stands on another's tables has the silicon of that one:
// energies of products by the square of their full clocks (the voltage follows the clock), and idle power in
// proportion to the boards' limits, as calibrate carries it.
ProfilePower power_on(const Accelerator& chip, const Profile& profile);

class BoardPower {
 public:
  // Of the first profile that knows it.
  BoardPower(const Accelerator& chip, const std::vector<Profile>& profiles);

  // Watts while the op runs for cost.seconds and moves cost.memory_bytes; 0 when the profile does not know,
  // or not for this type. Arithmetic outside the tensor units is not counted: it is little beside the bytes.
  double watts(const CostQuery& query, const Cost& cost) const;

 private:
  Accelerator chip_;
  ProfilePower power_;
  double limit_ = 0;
  std::array<double, kNumDTypes> joule_per_flop_{};  // by type of the products
};

}  // namespace moebius
