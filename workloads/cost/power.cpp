#include "workloads/cost/power.h"

#include <algorithm>

#include "models/layer_math.h"
#include "workloads/cost/roofline.h"

namespace moebius {

double board_limit(const Accelerator& chip, const Profile& profile) {
  if (chip.power.value <= 0) return profile.power.limit;
  const bool as_measured = chip.is(profile.accelerator) && chip.power.value == profile.reference.power.value;
  return as_measured ? profile.power.limit : chip.power.value;
}

const Profile* profile_with_power(const std::vector<Profile>& profiles) {
  const auto known = std::find_if(profiles.begin(), profiles.end(),
                                  [](const Profile& profile) { return profile.power.limit > 0; });
  return known == profiles.end() ? nullptr : &*known;
}

double full_clock_ratio(const Accelerator& chip, const Profile& profile) {
  const Accelerator& measured = profile.reference;
  if (chip.is(profile.accelerator) || chip.clock.value <= 0 || measured.clock.value <= 0) return 1;
  if (chip.boost.value > 0 && measured.boost.value > 0) return chip.boost.value / measured.boost.value;
  const double stated = chip.peak_clock.value > 0 ? chip.peak_clock.value : chip.clock.value;
  return stated / measured.clock.value;
}

ProfilePower power_on(const Accelerator& chip, const Profile& profile) {
  ProfilePower power = profile.power;
  if (chip.is(profile.accelerator)) return power;
  const double rated = chip.rated_power.value > 0 ? chip.rated_power.value : chip.power.value;
  if (rated > 0) power.idle *= rated / power.limit;
  const double clock = full_clock_ratio(chip, profile);
  for (double& joule : power.joule_per_flop) joule *= clock * clock;
  return power;
}

BoardPower::BoardPower(const Accelerator& chip, const std::vector<Profile>& profiles) : chip_(chip) {
  const Profile* known = profile_with_power(profiles);
  const bool has_peak =
      std::any_of(chip.peak.begin(), chip.peak.end(), [](FlopRate p) { return p.value > 0; });
  if (known == nullptr || !has_peak) return;
  power_ = power_on(chip, *known);
  limit_ = board_limit(chip, *known);
  const double share = chip.peak_share();
  for (int i = 0; i < kNumDTypes; ++i)
    joule_per_flop_[static_cast<std::size_t>(i)] =
        share * share *
        power_.joule_per_flop[static_cast<std::size_t>(executed_dtype(chip, static_cast<DType>(i)))];
}

double BoardPower::watts(const CostQuery& query, const Cost& cost) const {
  if (limit_ <= 0 || cost.seconds <= 0) return 0;
  double joules = power_.joule_per_byte * cost.memory_bytes;
  if (uses_tensor_cores(query.kind)) {
    const double each = joule_per_flop_[static_cast<std::size_t>(product_dtype(chip_, query))];
    if (each <= 0) return 0;
    joules += each * op_flops(query.kind, loaded_shape(query)).value;
  }
  return std::min(limit_, power_.idle + joules / cost.seconds);
}

}  // namespace moebius
