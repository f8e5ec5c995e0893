// Serving systems whose waiting time theory knows.
#include <cmath>
#include <memory>
#include <span>

#include <catch2/catch.hpp>

#include "workloads/routing/random_stream.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {
namespace {

// Requests of one prompt token and one answer at exponential distances.
class PoissonTraffic : public TrafficStream {
 public:
  PoissonTraffic(std::int64_t requests, double per_second) : left_(requests), mean_(1 / per_second) {}
  bool next(TrafficRequest& request) override {
    now_ += time_from_seconds(-std::log(random_.unit()) * mean_);
    request.arrival = now_;
    request.input_tokens = request.output_tokens = 1;
    return left_-- > 0;
  }

 private:
  std::int64_t left_;
  double mean_;
  RandomStream random_{7};
  Time now_;
};

OpenFeed poisson(std::int64_t requests, double per_second) {
  return OpenFeed(std::make_unique<PoissonTraffic>(requests, per_second));
}

class ConstantCost : public StepCost {
 public:
  explicit ConstantCost(double seconds) : seconds_(seconds) {}
  double seconds(std::span<const StepShape>) override { return seconds_; }

 private:
  double seconds_;
};

constexpr double kService = 1e-3;

// One server: an instance that takes one request at a time.
SystemRules one_server(StepCost& cost) {
  SystemRules rules;
  PoolRules pool;
  pool.cost = &cost;
  pool.instance.replica.max_running = 1;
  pool.instance.replica.pages = 1;
  rules.pools = {pool};
  return rules;
}

}  // namespace

// Pollaczek and Khinchine: with Poisson arrivals and a constant service time S a request waits
// rho S / (2 (1 - rho)) on average. A million requests at load 0.8 are 2e5 busy periods: 1% of noise.
TEST_CASE("requests before one server with a constant service time wait as M/D/1 says") {
  for (const double load : {0.5, 0.7, 0.8}) {
    ConstantCost cost(kService);
    OpenFeed feed = poisson(1'000'000, load / kService);
    ServingSystem system(one_server(cost), feed);
    while (system.advance()) continue;
    const double waited = system.metrics().shares().queue / 1e6;
    CHECK(waited == Approx(load * kService / (2 * (1 - load))).epsilon(0.03));
  }
}

// Of 1.25 requests in a service time one is answered, so that 0.25 stay.
TEST_CASE("above load one the queue grows by what arrives less what is served") {
  ConstantCost cost(kService);
  OpenFeed feed = poisson(1'000'000, 1.25 / kService);
  ServingSystem system(one_server(cost), feed);
  const Time end{500'000'000'000};  // 500 s: 625,000 arrivals
  while (system.now() < end && system.advance()) continue;
  CHECK(static_cast<double>(system.waiting()) == Approx(0.25 * 500 / kService).epsilon(0.03));
}

}  // namespace moebius
