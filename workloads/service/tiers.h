// The tiers below the pool of a service that takes prompts, in figures.
#pragma once

#include <optional>

#include "workloads/scenario/scenario.h"
#include "workloads/service/pools.h"
#include "workloads/serving/system/tiers/tier_rules.h"

namespace moebius {

// Nothing where the plan has none. `cost`: of an iteration of the pool; outlives the rules. run_error: a tier
// has no room for a block.
std::optional<TierRules> tier_rules(const Scenario& scenario, const TierPlan& plan, const ServicePool& pool,
                                    StepCost& cost);

// What computing a block takes more for each block before it, over what a first one takes.
double depth_cost(const Model& model, std::int64_t block_tokens);

}  // namespace moebius
