// What must hold of the engine around iterations: the host's time, places of sequences, prompts of one
// length.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/laws/row_cost.h"
#include "workloads/routing/random_stream.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {

using namespace literals;

namespace {

// A hundred requests a second of `low` to `high` tokens in, and 1 to 100 out.
class MixedLengths : public TrafficStream {
 public:
  MixedLengths(int low, int high) : low_(low), high_(high) {}
  bool next(TrafficRequest& request) override {
    request = {};
    request.arrival = now_ += Time{static_cast<std::int64_t>(2e7 * random_.unit())};
    request.input_tokens = low_ + random_.below(high_ - low_ + 1);
    request.output_tokens = 1 + random_.below(100);
    return left_-- > 0;
  }

 private:
  int low_, high_, left_ = 1000;
  RandomStream random_{11};
  Time now_;
};

class OneAnswer : public TrafficStream {
 public:
  bool next(TrafficRequest& request) override {
    request = {};
    request.input_tokens = 10;
    request.output_tokens = 101;
    return left_-- > 0;
  }

 private:
  int left_ = 1;
};

struct ServedRun {
  ServingFigures figures;
  PoolFigures pool;
};

SystemRules one_pool(StepCost& cost) {
  SystemRules rules;
  PoolRules& pool = rules.pools.emplace_back();
  pool.cost = &cost;
  pool.instance.replicas = 2;
  pool.instance.replica.page_tokens = 64;
  pool.instance.replica.pages = 1000;
  return rules;
}

ServedRun serve(const SystemRules& rules, int low = 1, int high = 2000) {
  OpenFeed feed(std::make_unique<MixedLengths>(low, high));
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  return {system.metrics().figures(), system.pools().front()};
}

double time_of_a_token(const SystemRules& rules) {
  OpenFeed feed(std::make_unique<OneAnswer>());
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  return system.metrics().figures().tpot.mean;
}

bool same(const ServedRun& one, const ServedRun& other) {
  return one.figures.e2e.mean == other.figures.e2e.mean && one.figures.itl.p99 == other.figures.itl.p99 &&
         one.figures.ttft.p99 == other.figures.ttft.p99;
}

}  // namespace

TEST_CASE("a host that takes no time is a host that is absent however its work is spread") {
  RowCost cost(1e-6, 1e-9);
  SystemRules rules = one_pool(cost);
  const ServedRun absent = serve(rules);
  HostCosts& host = rules.pools[0].instance.host;
  host.by_change = host.parallel = host.overlapped = true;
  host.input_workers = host.output_workers = 3;
  CHECK(same(serve(rules), absent));
}

// An iteration of one sequence takes the device 1.001 ms. What precedes it and what follows its launch are
// the host's, which hides beside it, or is what an iteration of a small model takes.
TEST_CASE("an engine that waits for its tokens takes longer by the host's part, never less than its device") {
  RowCost cost(1e-6);
  SystemRules rules = one_pool(cost);
  HostCosts& host = rules.pools[0].instance.host;
  host.per_iteration = 200_us, host.per_sequence = 100_us, host.per_submission = 600_us;
  CHECK(time_of_a_token(rules) == Approx(1.301e-3));
  host.overlapped = true;
  CHECK(time_of_a_token(rules) == Approx(1.001e-3));
  host.per_submission = 1500_us;
  CHECK(time_of_a_token(rules) == Approx(1.8e-3));
  host.overlapped = false;
  CHECK(time_of_a_token(rules) == Approx(1.8e-3));
}

TEST_CASE("prompts of one length are rows of one length") {
  RowCost cost(1e-6, 1e-9);
  SystemRules rules = one_pool(cost);
  const ServedRun flat = serve(rules, 500, 500);
  rules.pools[0].instance.replica.padded = true;
  const ServedRun padded = serve(rules, 500, 500);
  CHECK(same(padded, flat));
  CHECK(padded.pool.totals.padding == 0);
}

TEST_CASE("rows of the longest prompt's length cost more where prompts differ, and the rest is in vain") {
  RowCost cost(1e-6, 1e-9);
  SystemRules rules = one_pool(cost);
  const ServedRun flat = serve(rules);
  rules.pools[0].instance.replica.padded = true;
  const ServedRun padded = serve(rules);
  CHECK(padded.figures.completed == flat.figures.completed);
  CHECK(padded.figures.ttft.mean > flat.figures.ttft.mean);
  // Each prompt is computed once in both: what is left is what belongs to tokens, but for decoding rows,
  // which are as many.
  CHECK(padded.pool.totals.rows - padded.pool.totals.padding == flat.pool.totals.rows);
}

// A slot of 2,100 tokens is 33 pages: two of them are in 70, whatever they hold.
TEST_CASE("a slot holds what the longest sequence needs, so that fewer run and none is driven out") {
  RowCost cost(1e-6, 1e-9);
  SystemRules rules = one_pool(cost);
  ReplicaRules& replica = rules.pools[0].instance.replica;
  replica.pages = 70;
  const ServedRun paged = serve(rules);
  replica.slot_tokens = 2100;
  const ServedRun slots = serve(rules);
  CHECK(paged.pool.preemptions > 0);
  CHECK(slots.pool.preemptions == 0);
  CHECK(slots.figures.completed == 1000);
  CHECK(slots.pool.peak_pages <= 70 / 33 * 33);
}

TEST_CASE("with the same host slots bring tokens sooner") {
  RowCost cost(1e-6, 1e-9);
  SystemRules rules = one_pool(cost);
  HostCosts& host = rules.pools[0].instance.host;
  host.per_sequence = 50_us;
  const ServedRun global = serve(rules);
  host.by_change = true;
  const ServedRun slots = serve(rules);
  CHECK(slots.figures.itl.mean < global.figures.itl.mean);
  CHECK(slots.pool.host.loop < global.pool.host.loop);
}

TEST_CASE("graphs are filled up to the next size, and every request still ends") {
  RowCost cost(1e-6, 1e-9);
  SystemRules rules = one_pool(cost);
  const ServedRun exact = serve(rules);
  rules.pools[0].instance.captured = {1, 2, 4, 8, 16, 256};
  const ServedRun filled = serve(rules);
  CHECK(filled.figures.completed == exact.figures.completed);
  CHECK(filled.pool.totals.padding > 0);
  CHECK(captured_size({1, 2, 4}, 3) == 4);
  CHECK(captured_size({1, 2, 4}, 5) == 5);
}

TEST_CASE(
    "replicas that decode more than any graph has are launched kernel by kernel together, and not filled") {
  class Launches : public StepCost {
   public:
    double seconds(std::span<const StepShape> replicas) override {
      std::int32_t most = 0;
      std::int64_t padding = 0;
      bool prompts = false;
      for (const StepShape& shape : replicas) {
        most = std::max(most, shape.decode_sequences);
        padding += shape.padding;
        prompts |= shape.prefill_tokens > 0;
      }
      const bool beyond = !prompts && most > 2;
      for (const StepShape& shape : replicas) CHECK(shape.eager == beyond);
      if (beyond) CHECK(padding == 0);
      eager += beyond;
      return beyond ? 3e-3 : 1e-3;
    }
    std::int64_t eager = 0;
  };
  Launches cost;
  SystemRules rules = one_pool(cost);
  rules.pools[0].instance.captured = {1, 2};
  const ServedRun run = serve(rules);
  CHECK(run.figures.completed == 1000);
  CHECK(cost.eager > 0);
  CHECK(run.pool.totals.eager == cost.eager);
  CHECK(run.pool.totals.eager < run.pool.totals.iterations);
}

TEST_CASE("rows that fill a graph are told apart where they choose experts") {
  class Counts : public StepCost {
   public:
    double seconds(std::span<const StepShape> replicas) override {
      for (const StepShape& shape : replicas) {
        fillers += shape.fillers;
        padding += shape.padding;
      }
      return 1e-3;
    }
    std::int64_t fillers = 0, padding = 0;
  };
  Counts dense, experts;
  SystemRules rules = one_pool(dense);
  rules.pools[0].instance.captured = {8, 256};
  serve(rules);
  CHECK(dense.fillers == 0);
  rules.pools[0].cost = &experts;
  rules.pools[0].instance.choose_experts = true;
  serve(rules);
  CHECK(experts.fillers > 0);
  CHECK(experts.fillers == experts.padding);
}

// Iterations of a millisecond, whatever is in them, of which a quarter is waited for.
TEST_CASE("who waits in an iteration are its sequences, not rows that fill a graph") {
  class Waits : public StepCost {
   public:
    double seconds(std::span<const StepShape>) override { return 1e-3; }
    StepStalls stalls(std::span<const StepShape>, double seconds) override {
      return {.barrier = 0.25 * seconds};
    }
  };
  Waits cost;
  SystemRules rules = one_pool(cost);
  const ServedRun exact = serve(rules);
  rules.pools[0].instance.captured = {256};
  const ServedRun filled = serve(rules);
  REQUIRE(same(filled, exact));
  REQUIRE(filled.pool.totals.padding > exact.pool.totals.rows);
  CHECK(filled.pool.totals.stalls.barrier == exact.pool.totals.stalls.barrier);
  CHECK(filled.pool.totals.waited.barrier == exact.pool.totals.waited.barrier);
  CHECK(exact.pool.totals.waited.barrier > exact.pool.totals.stalls.barrier);
}

// Ten pages of four tokens hold two sequences of 16 and their growth to 20: at 5 ms the second is driven out,
// until the first has its twelve tokens at 12. Its keys are there then; where they have to be computed again
// they are a millisecond later.
TEST_CASE("a sequence in the host's memory is preempted until it comes back, another until it is computed") {
  class Pair : public TrafficStream {
   public:
    bool next(TrafficRequest& request) override {
      request = {};
      request.input_tokens = 16;
      request.output_tokens = 12;
      return left_-- > 0;
    }

   private:
    int left_ = 2;
  };
  RowCost cost(0);
  SystemRules rules = one_pool(cost);
  ReplicaRules& replica = rules.pools[0].instance.replica;
  rules.pools[0].instance.replicas = 1;
  replica.page_tokens = 4;
  replica.pages = 10;
  for (const bool swaps : {true, false}) {
    replica.host_pages = swaps ? 5 : 0;
    OpenFeed feed(std::make_unique<Pair>());
    ServingSystem system(rules, feed);
    while (system.advance()) continue;
    CHECK(system.pools()[0].preemptions == 1);
    CHECK(system.pools()[0].preempted == Approx(swaps ? 7e-3 : 8e-3));
  }
}

// A request takes 100 ms of the one worker, and comes every 10 ms: the last of a thousand waits 90 s or so.
TEST_CASE("requests wait for workers that turn them into tokens") {
  RowCost cost(1e-6, 1e-9);
  SystemRules rules = one_pool(cost);
  HostCosts& host = rules.pools[0].instance.host;
  host.parallel = true;
  host.per_request = 100_ms;
  const ServedRun one = serve(rules);
  CHECK(one.figures.ttft.p99 > 80);
  host.input_workers = 1000;
  const ServedRun many = serve(rules);
  CHECK(many.figures.ttft.p99 < 1);
}

}  // namespace moebius
