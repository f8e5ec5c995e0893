// The engine around the iterations of one instance, as the plan of a service says.
#pragma once

#include "workloads/serving/system/service_plan.h"

namespace moebius {

void set_engine_rules(const ServicePlan& service, const ServicePhase& phase, InstanceRules& rules);

// Sizes of captured graphs, ascending, up to `most` sequences: 1, 2, 4 and multiples of `step`; `most` is
// always one of them.
std::vector<std::int32_t> captured_sizes(int step, int most);

}  // namespace moebius
