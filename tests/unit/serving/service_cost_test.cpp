// What a service costs, worked out by hand.
#include <catch2/catch.hpp>

#include "workloads/serving/system/service_cost.h"

namespace moebius {
namespace {

// Two devices of 3 USD an hour, half of the hour busy, of which a third with prompts.
ServicePoolFigures pool() {
  ServicePoolFigures pool;
  pool.devices = 2;
  pool.tariff = {"chip", 3, "", "", 700, 100};
  pool.run.busy = 0.5;
  pool.run.totals.busy = time_from_seconds(1800);
  pool.run.totals.busy_with_prompts = time_from_seconds(600);
  pool.run.tokens = {{1'000'000, 100'000}, {3'000'000, 300'000}};
  return pool;
}

std::vector<ServiceClassFigures> classes() {
  std::vector<ServiceClassFigures> classes(2);
  classes[0].run.input = 1'000'000, classes[0].run.output = 100'000;
  classes[1].run.input = 3'000'000, classes[1].run.output = 300'000;
  return classes;
}

}  // namespace

TEST_CASE("devices cost what they are paid by the hour and idle ones too") {
  const CostFigures cost = cost_of({pool()}, {}, classes(), time_from_seconds(3600));
  CHECK(cost.usd == Approx(6));
  CHECK(cost.usd_idle == Approx(3));
  // A third of 6 USD over 4 million tokens in, two thirds over 0.4 million out.
  CHECK(1e6 * cost.pools[0].usd_per_input_token == Approx(0.5));
  CHECK(1e6 * cost.pools[0].usd_per_output_token == Approx(10));
}

TEST_CASE("what classes cost is together what the pool costs") {
  const CostFigures cost = cost_of({pool()}, {}, classes(), time_from_seconds(3600));
  CHECK(cost.class_usd[0] == Approx(1.5));  // 0.5 for a million in and 1 for 0.1 million out
  CHECK(cost.class_usd[0] + cost.class_usd[1] == Approx(cost.usd));
}

TEST_CASE("power is that of busy devices and of nodes all the time") {
  // 2 x (700 W x 0.5 + 100 W) for an hour.
  CHECK(cost_of({pool()}, {}, classes(), time_from_seconds(3600)).joules == Approx(2 * 450.0 * 3600));
}

TEST_CASE("of devices whose work is known to draw so much, that counts, and what they draw idle") {
  ServicePoolFigures known = pool();
  known.tariff.idle_watts = 80;
  known.drawn_joules = 1e6;
  CHECK(cost_of({known}, {}, classes(), time_from_seconds(3600)).joules == Approx(1e6 + 2 * 180.0 * 3600));
}

TEST_CASE("a chip without a price makes the cost unknown by its name") {
  ServicePoolFigures unpriced = pool();
  unpriced.tariff.usd_per_hour = 0;
  CHECK(cost_of({pool(), unpriced}, {}, classes(), time_from_seconds(3600)).unknown == "chip");
  CHECK(cost_of({pool()}, {}, classes(), time_from_seconds(3600)).unknown.empty());
}

// A pool that only decodes has no tokens in, and computes again what it drove out: that is part of what its
// tokens cost.
TEST_CASE("what classes cost is what all pools cost where decoding computes prompts again") {
  ServicePoolFigures prompts = pool(), decode = pool();
  prompts.run.totals.busy_with_prompts = prompts.run.totals.busy;
  for (ClassTokens& of : prompts.run.tokens) of.output = 0;
  for (ClassTokens& of : decode.run.tokens) of.input = 0;
  const CostFigures cost = cost_of({prompts, decode}, {}, classes(), time_from_seconds(3600));
  CHECK(cost.usd == Approx(12));
  CHECK(cost.class_usd[0] + cost.class_usd[1] == Approx(cost.usd));
}

// Four devices of 1 USD an hour beside the pool's two of 3.
TEST_CASE("encoders on devices of their own are paid for, by the tokens of prompts") {
  const EncoderDevices encoders{4, 0.25, {"eye", 1, "", "", 300, 0}};
  const CostFigures alone = cost_of({pool()}, {}, classes(), time_from_seconds(3600));
  const CostFigures cost = cost_of({pool()}, encoders, classes(), time_from_seconds(3600));
  CHECK(cost.usd == Approx(alone.usd + 4));
  CHECK(cost.usd_idle == Approx(alone.usd_idle + 3));
  CHECK(cost.joules == Approx(alone.joules + 4 * 75.0 * 3600));
  CHECK(cost.class_usd[0] == Approx(alone.class_usd[0] + 1));  // a quarter of the tokens in
  CHECK(cost.class_usd[0] + cost.class_usd[1] == Approx(cost.usd));
}

TEST_CASE("a pool that served nobody is paid for, by no class") {
  ServicePoolFigures idle = pool();
  idle.run.busy = 0;
  for (ClassTokens& of : idle.run.tokens) of = {};
  const CostFigures cost = cost_of({pool(), idle}, {}, classes(), time_from_seconds(3600));
  CHECK(cost.usd_unused == Approx(6));
  CHECK(cost.class_usd[0] + cost.class_usd[1] == Approx(cost.usd - cost.usd_unused));
}

}  // namespace moebius
