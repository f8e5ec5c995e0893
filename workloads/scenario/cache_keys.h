// Keys of a serving plan's cache: in device memory, and in the tiers below it.
#pragma once

#include "workloads/scenario/scenario_parts.h"
#include "workloads/serving/frameworks.h"

namespace moebius {

// `hbm`, `prefix`, `windows` of the cache.
void read_cache_keys(Section& cache, const Framework& framework, ServicePlan& service);
// `dram`, `ssd`, `index`, `prefetch`, `eviction`, `write`, `inclusion`, `load`, `layerwise` of the cache.
void read_tier_keys(Section& cache, ServicePlan& service, const Catalog* catalog);

// Relations between them and the rest of the scenario, whose phases are known.
void check_tiers(const Scenario& scenario, const Document& document);

}  // namespace moebius
