// What decides in a pool of a service, as its plan says: the same whether its iterations are timed, simulated
// or carried out.
#pragma once

#include "workloads/service_pools.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {

// Without costs, tiers and prices.
PoolRules pool_rules(const ServicePlan& service, const ServicePool& pool);

}  // namespace moebius
