// The requests of a service as a scenario describes them.
#pragma once

#include <memory>

#include "workloads/scenario/scenario.h"
#include "workloads/serving/system/arrivals.h"

namespace moebius {

std::unique_ptr<Arrivals> service_arrivals(const Scenario& scenario);

}  // namespace moebius
