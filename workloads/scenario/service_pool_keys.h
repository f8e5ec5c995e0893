// Key `pools` of a serving plan: several pools, each with chips, layout and batching of its own, serve one
// model.
#pragma once

#include <string>

#include "workloads/scenario/scenario_parts.h"
#include "workloads/serving/frameworks.h"

namespace moebius {

std::vector<PoolKeys> read_pools(Section& plan, const Framework& framework, const Cluster* cluster);

// Fills service.phases from its pools, and checks that they fit.
void set_phases_of_pools(Scenario& scenario, const Document& document);

// Where the keys of a phase stand: "/plan/prefill", "/plan/decode", "/plan/pools/1".
std::string pointer_of_phase(const Scenario& scenario, std::size_t phase);

}  // namespace moebius
