// The least energy that boards take whatever plan they run, for bounds of a search by joules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/cost/clock_power.h"
#include "workloads/scenario/scenario.h"

namespace moebius {

struct EnergyFloor {
  std::optional<double> idle_watts = {};  // of a device; nothing: not known, and what its work draws neither
  double joule_per_flop = 0;              // of any product, in any format
};

// At the lowest clock to which products without end bring the board that draws most, in the format that takes
// least. A product of a format whose rows ran at the board's limit draws that limit for as long as it takes,
// which is no shorter than at 1.25 of the stated peak (tables reach 1.1).
EnergyFloor energy_floor(const ClockPower& power);

// By pool of the scenario's cluster. `data`: of cost sources, as the executors'.
std::vector<EnergyFloor> energy_floors(const Scenario& scenario, const std::string& data);

}  // namespace moebius
