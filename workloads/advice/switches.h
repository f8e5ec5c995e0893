// Single changes of a training scenario that may make it faster.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/scenario.h"
#include "workloads/schedule/layout.h"

namespace moebius {

struct Switch {
  std::string name;
  std::vector<std::string> sets;  // "/json/pointer=value"
};

// Those that this scenario, whose ranks stand as `layout` says, has not thrown and that mean something to it. Whether it takes them, only reading
// it tells.
std::vector<Switch> open_switches(const Scenario& scenario, const Layout& layout);

}  // namespace moebius
