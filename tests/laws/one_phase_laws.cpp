// A service that does one phase alone.
#include <memory>
#include <span>

#include <catch2/catch.hpp>

#include "workloads/serving/system/serving_system.h"

namespace moebius {
namespace {

class MillisecondCost : public StepCost {
 public:
  double seconds(std::span<const StepShape> replicas) override {
    for (const StepShape& shape : replicas) prompts += shape.prefill_tokens;
    return 1e-3;
  }
  std::int64_t prompts = 0;
};

// Equal requests, all there at the beginning.
class EqualRequests : public TrafficStream {
 public:
  explicit EqualRequests(int requests, int output) : left_(requests), output_(output) {}
  bool next(TrafficRequest& request) override {
    if (left_-- == 0) return false;
    request = {};
    request.input_tokens = 100;
    request.output_tokens = output_;
    return true;
  }

 private:
  int left_, output_;
};

ServiceMetrics run(PoolRole role, MillisecondCost& cost, int requests, int output = 11) {
  PoolRules pool;
  pool.role = role;
  pool.cost = &cost;
  pool.instance.replicas = 2;
  pool.instance.replica.max_running = 4;
  pool.instance.replica.token_budget = 400;
  pool.instance.replica.page_tokens = 64;
  pool.instance.replica.pages = 100;
  SystemRules rules;
  rules.pools = {pool};
  OpenFeed feed(std::make_unique<EqualRequests>(requests, output));
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  CHECK(system.waiting() == 0);
  CHECK(system.transferred_bytes() == 0);
  return system.metrics();
}

}  // namespace

// 24 prompts of 100 on two replicas with a budget of 400: three iterations of eight.
TEST_CASE("prompts alone end with their first token") {
  MillisecondCost cost;
  const ServingFigures figures = run(PoolRole::kPrefill, cost, 24).figures();
  CHECK(figures.completed == 24);
  CHECK(figures.input_tokens_per_s == Approx(2400 / 3e-3));
  CHECK(figures.output_tokens_per_s == Approx(24 / 3e-3));  // a token each, whatever was asked for
  CHECK(cost.prompts == 2400);
}

// The cache holds 6,400 tokens of a replica.
TEST_CASE("answers that are never made count nowhere and need no room") {
  for (const int output : {11, 100'000}) {
    MillisecondCost cost;
    const ClassFigures of = run(PoolRole::kPrefill, cost, 24, output).classes()[0];
    CHECK(of.completed == 24);
    CHECK(of.rejected == 0);
    CHECK(of.output == 24);
    CHECK(of.tpot.count() == 0);
  }
}

// Eight sequences have room at a time: two waves of ten iterations, a token each in every one. The first of
// their eleven tokens was there.
TEST_CASE("answers alone begin with a cache that is there") {
  MillisecondCost cost;
  const ServingFigures figures = run(PoolRole::kDecode, cost, 16).figures();
  CHECK(figures.completed == 16);
  CHECK(figures.output_tokens_per_s == Approx(160 / 20e-3));
  CHECK(figures.tpot.mean == Approx(1e-3).epsilon(0.02));
  CHECK(cost.prompts == 0);
}

}  // namespace moebius
