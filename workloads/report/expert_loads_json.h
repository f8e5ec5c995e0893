// How unevenly experts were loaded, for scripts.
#pragma once

#include <string>

#include "workloads/routing/expert_loads.h"

namespace moebius {

// The value of the report's key "experts": `max_violation` by step, `dropped_share` of copies, where buffers
// were filled up `padding_share` of the rows of experts, and `layers`, a row for each and step.
std::string loads_json(const ExpertLoads& loads);

}  // namespace moebius
