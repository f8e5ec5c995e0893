// Keys of a serving plan that say which kernels an engine runs, and how its host launches them.
#pragma once

#include "workloads/scenario/scenario_parts.h"
#include "workloads/serving/frameworks.h"

namespace moebius {

// `precision` and `weights`, `fused` and the keys that begin like it, `quantised_output`,
// `quantised_reduction` and `one_expert_call`.
void read_kernels(Section& section, const Framework& framework, Scenario& scenario);

// Whether one call launches a layer's experts, on the devices of each phase, which are known.
void set_expert_calls(Scenario& scenario);

}  // namespace moebius
