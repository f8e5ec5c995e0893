// How long the requests of a batch are, and what their cache needs.
#pragma once

#include "workloads/serving/plan.h"

namespace moebius {

// Pages that `plan` needs for its longest requests, and one for padding.
std::int32_t cache_pages(const ServingPlan& plan, const ServingWorkload& workload);

}  // namespace moebius
