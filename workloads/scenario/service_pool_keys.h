// Key `pools` of a serving plan: several pools, each with chips, layout and batching of its own, serve one
// model.
#pragma once

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

std::vector<PoolKeys> read_pools(Section& plan, const Framework& framework);

// Fills service.phases from its pools, and checks that they fit.
void set_phases_of_pools(Scenario& scenario, const Document& document);

}  // namespace moebius
