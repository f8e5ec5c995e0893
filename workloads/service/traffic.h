// The requests of a service as a scenario describes them.
#pragma once

#include <memory>

#include "workloads/scenario/scenario.h"
#include "workloads/serving/system/request_feed.h"

namespace moebius {

// The first served.requests of them; all where that is 0, as it is of a file unless someone wants fewer.
std::unique_ptr<RequestFeed> request_feed(const Scenario& scenario);

}  // namespace moebius
