// The engine around the iterations of one instance, as the plan of a service says.
#pragma once

#include "workloads/service/pools.h"

namespace moebius {

void set_engine_rules(const ServicePlan& service, const ServicePool& pool, InstanceRules& rules);

// Sizes of captured graphs, ascending, up to `most` sequences: 1, 2, 4 and multiples of `step`, from
// `doubled_from` on (0: never) each twice the one before; `most` is always one of them.
std::vector<std::int32_t> captured_sizes(int step, int doubled_from, int most);

}  // namespace moebius
