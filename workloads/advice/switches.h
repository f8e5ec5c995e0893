// Single changes of a training scenario that may make it faster.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/scenario.h"

namespace moebius {

struct Switch {
  std::string name;
  std::vector<std::string> sets;  // "/json/pointer=value"
};

// Those that this scenario has not thrown and that mean something to it. Whether it takes them, only reading
// it tells.
std::vector<Switch> open_switches(const Scenario& scenario);

}  // namespace moebius
