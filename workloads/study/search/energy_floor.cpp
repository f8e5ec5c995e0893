#include "workloads/study/search/energy_floor.h"

#include <algorithm>
#include <limits>

#include "workloads/measured_stacks.h"

namespace moebius {
namespace {

constexpr double kFastestProduct = 1.25;  // of the stated peak

}  // namespace

EnergyFloor energy_floor(const ClockPower& power) {
  if (power.most() <= 0) return {};
  double clock = 1, least = std::numeric_limits<double>::infinity();
  const double timed = (power.timed_limit > 0 ? power.timed_limit : power.most()) - power.idle;
  for (std::size_t type = 0; type < power.peak.size(); ++type) {
    const double rate = kFastestProduct * power.peak[type];
    if (rate <= 0) continue;
    for (const double joule : {power.joule_per_product[type], power.joule_per_flop[type]}) {
      if (power.limit > 0)
        clock = std::min(clock, clock_at_limit(power, {.clocked = power.draws * joule * rate,
                                                       .steady = power.joule_per_byte * power.memory_rate,
                                                       .full = 1}));
      least = std::min({least, joule, std::max(0.0, timed) / rate});
    }
  }
  return {power.idle, least < std::numeric_limits<double>::infinity() ? least * clock * clock : 0};
}

std::vector<EnergyFloor> energy_floors(const Scenario& scenario, const std::string& data) {
  std::vector<EnergyFloor> floors;
  for (const Pool& pool : scenario.cluster->pools) {
    const ClockPower power = clock_power(pool.accelerator, profiles_for(scenario, pool.accelerator, data));
    floors.push_back(energy_floor(limited_by_hungriest(power, scenario.cluster->variation.power,
                                                       scenario.cluster->fabric.num_devices())));
  }
  return floors;
}

}  // namespace moebius
