// What a request would meet at a replica, from what is there now and from what iterations take: the same
// costs that the simulated clock runs on, asked for iterations that nobody carries out. A forecast knows
// neither what comes next nor how many tokens a request will be given: those before it are taken to be as
// long as requests were so far on average.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"
#include "workloads/serving/system/instance.h"

namespace moebius {

// A request as it stands before a replica.
struct ForecastRequest {
  std::int64_t input = 0;   // tokens of its prompt
  std::int64_t cached = 0;  // of which the replica has so many
  std::int32_t priority = 0;
  double arriving = 0;  // tokens of other prompts a second that come to the replica, as so far
};

struct Forecast {
  Time first_token = {};      // from now on
  Time per_token = {};        // each further one
  double prompt_seconds = 0;  // of the instance, for its own prompt
  double token_seconds = 0;   // of the instance, for one further token: its share of an iteration
};

class Forecaster {
 public:
  Forecaster(const InstanceRules& rules, StepCost* cost) : rules_(rules), cost_(cost) {}

  // Prompts before it in chunks of the token budget behind the iteration that goes on, then its own; where
  // slots or pages are missing, as long as running requests take on average to leave as many. What comes
  // before the iteration of its own begins shares that iteration, as far as the budget goes.
  Forecast prompt(const Instance& instance, int replica, const ForecastRequest& request, double mean_output,
                  Time now);
  // An iteration of all that run and wait and this one, over the tokens that it gives a sequence; prompts
  // take `prompt_share` of the instance's time, as lately.
  Forecast decode(const Instance& instance, int replica, const ForecastRequest& request, double prompt_share);

 private:
  double prompts(const Instance& instance, int replica, std::int64_t tokens, double keys);
  double iteration(const Instance& instance, int replica, const ForecastRequest& request,
                   std::int64_t& sequences);
  double host(std::int64_t sequences) const;
  double until_room(const Instance& instance, int replica, const ForecastRequest& request,
                    double mean_output);

  InstanceRules rules_;
  StepCost* cost_;  // outlives the forecaster
  std::vector<StepShape> shapes_;
};

}  // namespace moebius
