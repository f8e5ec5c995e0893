// How long the requests of a batch are, and what their cache needs.
#pragma once

#include "workloads/serving/plan.h"

namespace moebius {

// Of all requests together.
std::int64_t output_tokens(const ServingWorkload& workload);

// Pages that `plan` needs for its longest requests, and for padding.
std::int32_t cache_pages(const ServingPlan& plan, const ServingWorkload& workload);

}  // namespace moebius
