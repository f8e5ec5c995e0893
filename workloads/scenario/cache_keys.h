// Keys of a serving plan's cache that concern the tiers below device memory.
#pragma once

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

// `dram`, `ssd`, `index`, `prefetch`, `eviction`, `write`, `inclusion`, `load`, `layerwise` of the cache.
void read_tier_keys(Section& cache, ServicePlan& service, const Catalog* catalog);

// Relations between them and the rest of the scenario, whose phases are known.
void check_tiers(const Scenario& scenario, const Document& document);

}  // namespace moebius
