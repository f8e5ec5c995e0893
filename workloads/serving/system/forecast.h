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
  std::int32_t images = 0;  // that the replica encodes before its prompt
  Time away = {};           // until it is there
  double mean_output = 1;   // tokens that a request is given, as so far
  double arriving = 0;      // tokens of other prompts a second that come to the replica, as lately
  double joining = 0;       // requests a second that come to decode there, as lately
  double prompt_share = 0;  // of the instance's time that goes to prompts, as lately
};

struct Forecast {
  Time first_token = {};  // from now on
  Time per_token = {};    // each further one
  Time room = {};         // from now on until it can decode, where that alone is done
  bool queues = false;    // prompts before its own fill an iteration, or it waits for others to leave
  // What it takes of the instance, whoever is there: for its own prompt, and for one further token where the
  // instance is full of such requests.
  double prompt_seconds = 0, token_seconds = 0;
};

class Forecaster {
 public:
  explicit Forecaster(const InstanceRules& rules) : rules_(rules) {}

  // The iteration that goes on when it is there; then prompts before it and its own, in iterations as full as
  // the budget lets them be, the last of them with what stands behind it and what comes meanwhile; where
  // iterations are mixed, with all that decode. Where slots or pages are missing, as long as running requests
  // take on average to leave as many.
  Forecast prompt(const Instance& instance, int replica, const ForecastRequest& request, Time now);
  // An iteration of all that run, wait or are on their way and this one, over the tokens that it gives a
  // sequence. While it decodes, others leave and come, so that their number goes towards that of Little's
  // law.
  Forecast decode(const Instance& instance, int replica, const ForecastRequest& request);
  // Seconds until as many as are in its way have left.
  double until_room(const Instance& instance, int replica, const ForecastRequest& request);

 private:
  // What an iteration does on the replica that is asked for.
  struct Rows {
    std::int64_t prompts = 0;
    double keys = 0;  // that each of their tokens attends to
    bool decodes = false;
    double growth = 1;        // of the sequences that decode
    std::int64_t images = 0;  // of its prompts and those before them
    bool absorbed = false;    // most of its prompts' tokens, see LatentRule
  };
  double seconds(const Instance& instance, int replica, const ForecastRequest& request, const Rows& rows);
  void add_decoding(const ReplicaLoad& load, const ForecastRequest* own, double growth,
                    StepShape& shape) const;
  double share(const Instance& instance, const StepShape& each);
  double price_of_prompt(const Instance& instance, const ForecastRequest& request);
  double price_of_token(const Instance& instance, const ForecastRequest& request);
  double cost_of(const Instance& instance);  // of the iteration of shapes_, on the device
  double with_host(double device) const;     // and with the processor
  Time begins(const Instance& instance, int replica, const ForecastRequest& request, Time now);

  InstanceRules rules_;
  std::vector<StepShape> shapes_;
};

}  // namespace moebius
