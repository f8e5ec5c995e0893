// What a scenario says once it is read: the machines and every setting in use, stated defaults included.
#pragma once

#include <string>

#include "workloads/scenario/scenario.h"

namespace moebius {

std::string settings_text(const Scenario& scenario);

}  // namespace moebius
