// Which requests a service turns away when they come, so that those it takes are served as promised.
#pragma once

#include <cstdint>

#include "workloads/serving/system/router.h"

namespace moebius {

enum class AdmissionPolicy : std::uint8_t {
  kNone,        // all are taken
  kQueueLimit,  // not those that find too many waiting where they would go
  kPredicted,   // not those whose first token, or time per token, is forecast to come later than promised
};

struct AdmissionRules {
  AdmissionPolicy policy = AdmissionPolicy::kNone;
  std::int64_t most_waiting = 0;  // kQueueLimit: on a replica, without pages yet
};

// Whether the request, for which `at` is chosen, is taken. A class that is promised nothing is never late.
bool admits(const AdmissionRules& rules, Router& router, const Replica& replica, const Location& at,
            const RouteRequest& request, Time now);

}  // namespace moebius
