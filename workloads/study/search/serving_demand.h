// What the traffic of a service asks for, whatever plan serves it.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/scenario/scenario.h"

namespace moebius {

struct DemandedRequest {
  double arrival = 0;  // seconds
  std::int64_t input = 0, output = 0;
  // Of the input, tokens that no request before it begins with: who computes least computes these, at least
  // one. All of it where caches are not shared.
  std::int64_t fresh = 0;
  std::int32_t service_class = 0;
};

struct ServingDemand {
  std::vector<DemandedRequest> requests;  // as they come
  bool open = false;                      // they come at times of their own, whatever becomes of the others
  double last = 0;                        // arrival, when open
  std::int64_t outputs = 0;               // tokens of all
  std::int64_t least_input = 0, most_input = 0, most_output = 0;

  // Requests a second, when open.
  double rate() const { return static_cast<double>(requests.size()) / last; }
};

// Of the first `most` requests of a service.
ServingDemand demand_of(const Scenario& scenario, std::int64_t most);

// The scenario with no more requests than these.
void keep_first_requests(Scenario& scenario, std::int64_t most);

}  // namespace moebius
