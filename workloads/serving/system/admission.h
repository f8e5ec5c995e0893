// Which requests a service turns away when they come, so that those it takes are served as promised.
#pragma once

#include <cstdint>

#include "workloads/serving/system/router.h"

namespace moebius {

// Whether the request, for which `at` is chosen, is taken. A class that is promised nothing is never late.
bool admits(const AdmissionRules& rules, Router& router, const Replica& replica, const Location& at,
            const RouteRequest& request, Time now);

}  // namespace moebius
