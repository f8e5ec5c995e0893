// Keys of a serving plan that concern the system around its iterations: pools, router, scheduler, transfers.
#pragma once

#include "workloads/scenario/scenario_parts.h"

namespace moebius {

// `steps`, `separation`, `router`, `dp_balance`, `transfer`, `scheduler` of a plan.
void read_service_keys(Section& plan, ServicePlan& service);
// `speculative` of decode; `hbm` and `prefix` of the cache.
void read_speculation(Section& decode, const ModelCatalog* models, ServicePlan& service);
void read_cache_keys(Section& cache, ServicePlan& service);

// Fills service.phases from the keys of both phases, and checks that they fit on their pools; with full steps
// nothing.
void set_phases(Scenario& scenario, const Document& document);

}  // namespace moebius
