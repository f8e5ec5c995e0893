// Requests that are late wherever they go: a router spares others for their sake, and no device.
#include "workloads/serving/system/serving_system.h"

#include <catch2/catch.hpp>

#include "tests/laws/row_cost.h"

namespace moebius {
namespace {

// Bursts of requests of one length, one burst every `gap`.
class Bursts : public TrafficStream {
 public:
  Bursts(int bursts, int requests, Time gap) : left_(bursts * requests), requests_(requests), gap_(gap) {}
  bool next(TrafficRequest& request) override {
    if (given_ == left_) return false;
    request = {};
    request.arrival = gap_ * (given_++ / requests_);
    request.input_tokens = 640;
    request.output_tokens = 40;
    return true;
  }

 private:
  int left_, requests_, given_ = 0;
  Time gap_;
};

struct Served {
  Time span;
  double busy = 0;  // share of the span, of all instances
};

Served serve(RouterPolicy router, int bursts, int requests, PoolRole role = PoolRole::kBoth) {
  RowCost cost(1e-4);
  SystemRules rules;
  rules.router = router;
  rules.pools = {paged_pool(role, cost, 8)};
  if (role == PoolRole::kDecode) rules.pools.push_back(paged_pool(PoolRole::kPrefill, cost, 8));
  rules.transfer = {.bytes_per_token = 1000, .rate = {1e9}, .latency = {}, .layers = 10, .layerwise = false};
  // Kept by few requests on an instance.
  rules.classes.front().goal = {time_from_seconds(0.2), time_from_seconds(0.003)};
  OpenFeed feed(std::make_unique<Bursts>(bursts, requests, time_from_seconds(20)));
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  REQUIRE(system.metrics().finished() == bursts * requests);
  return {system.span(), system.pools()[0].busy};
}

TEST_CASE("who is late everywhere leaves no instance without work") {
  for (const PoolRole role : {PoolRole::kBoth, PoolRole::kDecode}) {
    INFO(static_cast<int>(role));
    const Served level = serve(RouterPolicy::kLeastTokens, 1, 2000, role);
    const Served spared = serve(RouterPolicy::kSlaAware, 1, 2000, role);
    CHECK(spared.span.seconds() < 1.1 * level.span.seconds());
    CHECK(spared.busy > 0.9 * level.busy);
  }
}

TEST_CASE("nor after bursts that came before") {
  const Served level = serve(RouterPolicy::kLeastTokens, 10, 600);
  CHECK(serve(RouterPolicy::kSlaAware, 10, 600).span.seconds() < 1.02 * level.span.seconds());
}

}  // namespace
}  // namespace moebius
