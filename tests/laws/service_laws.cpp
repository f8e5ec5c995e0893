// What must hold of a serving system whatever its iterations take.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/laws/row_cost.h"
#include "workloads/routing/random_stream.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {
namespace {

// Requests of 1 to 2,000 tokens in and 1 to 100 out, a hundred a second; sessions of four share what is
// before.
class SharedSessions : public TrafficStream {
 public:
  explicit SharedSessions(int requests) : left_(requests) {}
  bool next(TrafficRequest& request) override {
    if (left_-- == 0) return false;
    request = {};
    request.arrival = now_ += Time{static_cast<std::int64_t>(2e7 * random_.unit())};
    request.input_tokens = 1 + random_.below(2000);
    request.output_tokens = 1 + random_.below(100);
    request.block_tokens = 64;
    for (std::int64_t i = 0; i * 64 < request.input_tokens; ++i)
      request.blocks.push_back(static_cast<std::uint64_t>(left_ / 4 * 1000 + i));
    inputs += request.output_tokens > 1 ? request.input_tokens : 0;
    outputs += request.output_tokens;
    return true;
  }
  static inline std::int64_t inputs = 0, outputs = 0;  // of what was given since they were set to zero

 private:
  int left_;
  RandomStream random_{11};
  Time now_;
};

PoolRules pool_of(PoolRole role, StepCost& cost, int instances, int replicas) {
  PoolRules pool;
  pool.role = role;
  pool.cost = &cost;
  pool.instances = instances;
  pool.instance.replicas = replicas;
  pool.instance.replica.page_tokens = 64;
  pool.instance.replica.pages = 200;
  return pool;
}

SystemRules apart(StepCost& cost) {
  SystemRules rules;
  rules.pools = {pool_of(PoolRole::kPrefill, cost, 2, 2), pool_of(PoolRole::kDecode, cost, 1, 4)};
  rules.pools[0].name = "prefill";
  rules.pools[1].name = "decode";
  rules.transfer = {.bytes_per_token = 1000, .rate = {1e9}, .latency = {}, .layers = 10, .layerwise = true};
  return rules;
}

ServingFigures serve_sessions(const SystemRules& rules, double* transferred = nullptr) {
  SharedSessions::inputs = SharedSessions::outputs = 0;
  OpenFeed feed(std::make_unique<SharedSessions>(2000));
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  if (transferred != nullptr) *transferred = system.transferred_bytes();
  CHECK(system.waiting() == 0);
  return system.metrics().figures();
}

}  // namespace

TEST_CASE("every request ends, and all tokens come that were asked for") {
  RowCost cost;
  for (const BatchPolicy policy : {BatchPolicy::kPrefillFirst, BatchPolicy::kMixed}) {
    SystemRules rules;
    rules.pools = {pool_of(PoolRole::kBoth, cost, 2, 2)};
    rules.pools[0].instance.replica.policy = policy;
    const ServingFigures figures = serve_sessions(rules);
    CHECK(figures.completed == 2000);
    const double seconds = static_cast<double>(figures.completed) / figures.goodput_rps;
    CHECK(figures.output_tokens_per_s * seconds == Approx(static_cast<double>(SharedSessions::outputs)));
  }
}

TEST_CASE("caches that are handed over have the bytes of the prompts that go on decoding") {
  RowCost cost;
  double transferred = 0;
  const ServingFigures figures = serve_sessions(apart(cost), &transferred);
  CHECK(figures.completed == 2000);
  CHECK(transferred == 1000.0 * static_cast<double>(SharedSessions::inputs));
}

TEST_CASE("layers that leave as they are computed never arrive later") {
  RowCost cost;
  SystemRules rules = apart(cost);
  const double with = serve_sessions(rules).e2e.mean;
  rules.transfer.layerwise = false;
  CHECK(serve_sessions(rules).e2e.mean > with);
}

TEST_CASE("a first token that comes from where decoding goes on comes later, and nothing else changes") {
  RowCost cost;
  SystemRules rules = apart(cost);
  const ServingFigures early = serve_sessions(rules);
  rules.transfer.brings_first_token = true;
  const ServingFigures late = serve_sessions(rules);
  CHECK(late.ttft.mean > early.ttft.mean);
  CHECK(late.ttft.p50 >= early.ttft.p50);
  CHECK(late.tpot.mean < early.tpot.mean);
  CHECK(late.e2e.mean == early.e2e.mean);
}

TEST_CASE("where decoding has no room caches wait where they were computed, and prefill waits behind them") {
  RowCost cost;
  SystemRules rules = apart(cost);
  const ServingFigures wide = serve_sessions(rules);
  rules.pools[1].instance.replica.pages = 40;
  const ServingFigures narrow = serve_sessions(rules);
  CHECK(narrow.completed == 2000);
  CHECK(narrow.e2e.mean > wide.e2e.mean);
}

TEST_CASE("a shared prefix shortens the time to the first token and changes nothing that is generated") {
  RowCost cost;
  SystemRules rules;
  rules.pools = {pool_of(PoolRole::kBoth, cost, 1, 1)};
  const ServingFigures without = serve_sessions(rules);
  rules.pools[0].instance.replica.shared_tokens = 64;
  const ServingFigures with = serve_sessions(rules);
  CHECK(with.completed == without.completed);
  CHECK(with.ttft.mean < without.ttft.mean);
}

TEST_CASE("the same requests give the same figures") {
  RowCost cost;
  SystemRules rules = apart(cost);
  rules.pools[1].instance.replica.speculation = {2, 0.7};
  const ServingFigures one = serve_sessions(rules), other = serve_sessions(rules);
  CHECK(one.e2e.mean == other.e2e.mean);
  CHECK(one.itl.p99 == other.itl.p99);
}

// A slice of a trace begins when it likes.
TEST_CASE("an hour before the first request changes no rate") {
  class Later : public TrafficStream {
   public:
    explicit Later(Time by) : by_(by) {}
    bool next(TrafficRequest& request) override {
      const bool found = sessions_.next(request);
      request.arrival += by_;
      return found;
    }

   private:
    Time by_;
    SharedSessions sessions_{200};
  };
  RowCost cost;
  std::vector<double> rates, busy;
  for (const std::int64_t hours : {0, 1}) {
    OpenFeed feed(std::make_unique<Later>(Time{hours * 3'600'000'000'000}));
    ServingSystem system(apart(cost), feed);
    while (system.advance()) continue;
    rates.push_back(system.metrics().figures().output_tokens_per_s);
    busy.push_back(system.pools()[1].busy);
  }
  CHECK(rates[1] == rates[0]);
  CHECK(busy[1] == busy[0]);
}

TEST_CASE("a request that asks for no token ends with the one that its prompt makes") {
  class Silent : public TrafficStream {
   public:
    bool next(TrafficRequest& request) override {
      request = {};
      request.input_tokens = 10;
      return left_-- > 0;
    }

   private:
    int left_ = 3;
  };
  RowCost cost;
  OpenFeed feed(std::make_unique<Silent>());
  ServingSystem system(apart(cost), feed);
  while (system.advance()) continue;
  CHECK(system.metrics().figures().completed == 3);
  CHECK(system.transferred_bytes() == 0);
}

// Ten users, each asking again when answered, never have more than ten requests in the system.
TEST_CASE("users who wait for answers keep as many requests in the system as they are") {
  RowCost cost;
  SystemRules rules;
  rules.pools = {pool_of(PoolRole::kBoth, cost, 1, 1)};
  rules.pools[0].instance.replica.pages = 2000;
  ClosedFeed feed(std::make_unique<SharedSessions>(500), 10);
  ServingSystem system(rules, feed);
  std::int64_t most = 0;
  while (system.advance()) most = std::max(most, system.waiting());
  CHECK(most == 10);
  CHECK(system.metrics().figures().completed == 500);
}

namespace {

// Of equal lengths, one every `gap`.
class EqualRequests : public TrafficStream {
 public:
  EqualRequests(int requests, Time gap, int input, int output)
      : left_(requests), gap_(gap), input_(input), output_(output) {}
  bool next(TrafficRequest& request) override {
    request = {};
    request.arrival = now_;
    request.input_tokens = input_;
    request.output_tokens = output_;
    now_ += gap_;
    return left_-- > 0;
  }

 private:
  int left_;
  Time gap_, now_;
  int input_, output_;
};

ServiceMetrics metrics_of(const SystemRules& rules, std::unique_ptr<RequestFeed> feed) {
  ServingSystem system(rules, *feed);
  while (system.advance()) continue;
  return system.metrics();
}

}  // namespace

// By Little's law the requests in the system are their rate times how long each takes: eight but for the end,
// when users find nothing more to ask. Answers of one pool are half a second on their way back.
TEST_CASE("users ask again when they have their answer, though others were answered first") {
  RowCost cost;
  SystemRules rules;
  rules.pools = {pool_of(PoolRole::kBoth, cost, 1, 1), pool_of(PoolRole::kBoth, cost, 1, 1)};
  rules.pools[0].wan = WanRules{{500'000'000}, {1e12}};
  const ServiceMetrics metrics = metrics_of(
      rules, std::make_unique<ClosedFeed>(std::make_unique<EqualRequests>(1000, Time{}, 200, 20), 8));
  const ServingFigures figures = metrics.figures();
  CHECK(figures.completed == 1000);
  CHECK(1000 * figures.e2e.mean / metrics.span().seconds() == Approx(8).epsilon(0.03));
}

// What the host takes before a request can be scheduled is no link's.
TEST_CASE("the time of requests on links and that at the host are told apart") {
  RowCost cost;
  SystemRules rules;
  rules.pools = {pool_of(PoolRole::kBoth, cost, 1, 1)};
  rules.pools[0].instance.host.reception = Time{100'000'000};
  const auto shares = [&] {
    return metrics_of(rules,
                      std::make_unique<OpenFeed>(std::make_unique<EqualRequests>(20, Time{100'000}, 500, 20)))
        .shares();
  };
  CHECK(shares().reception == Approx(2));
  CHECK(shares().network == 0);
  rules.pools[0].wan = WanRules{{500'000'000}, {1e12}};
  CHECK(shares().reception == Approx(2));
  CHECK(shares().network == Approx(20).epsilon(0.01));
}

// Two hundred within 20 ms, each received for 100: of those that come before the first is there four are
// taken.
TEST_CASE("requests on their way are in the queue that is limited") {
  RowCost cost;
  SystemRules rules;
  rules.pools = {pool_of(PoolRole::kBoth, cost, 1, 1)};
  rules.pools[0].instance.host.reception = Time{100'000'000};
  rules.admission = {AdmissionPolicy::kQueueLimit, 4};
  const ServiceMetrics metrics = metrics_of(
      rules, std::make_unique<OpenFeed>(std::make_unique<EqualRequests>(200, Time{100'000}, 500, 20)));
  CHECK(metrics.classes()[0].completed == 4);
  CHECK(metrics.classes()[0].turned_away == 196);
}

// 2,000 tokens are 32 pages: prefill has 200, decoding 10.
TEST_CASE("a request that ends with its first token needs no room where others go on") {
  RowCost cost;
  SystemRules rules = apart(cost);
  rules.pools[1].instance.replica.pages = 10;
  for (const int output : {1, 2}) {
    const ServiceMetrics metrics = metrics_of(
        rules, std::make_unique<OpenFeed>(std::make_unique<EqualRequests>(5, Time{}, 2000, output)));
    CHECK(metrics.classes()[0].completed == (output == 1 ? 5 : 0));
  }
}

TEST_CASE("prompts that came computed are no tokens of a pool that only decodes") {
  RowCost cost;
  SystemRules rules;
  rules.pools = {pool_of(PoolRole::kDecode, cost, 1, 1)};
  OpenFeed feed(std::make_unique<EqualRequests>(20, Time{}, 500, 20));
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  CHECK(system.pools()[0].tokens[0].input == 0);
  CHECK(system.pools()[0].tokens[0].output == 20 * 19);
}

TEST_CASE("no first token is late where all are there when requests come") {
  RowCost cost;
  SystemRules rules;
  rules.pools = {pool_of(PoolRole::kDecode, cost, 1, 1)};
  rules.pools[0].instance.replica.max_running = 1;
  rules.classes[0].goal = {Time{1}, Time{1'000'000'000}};
  const ServiceMetrics metrics =
      metrics_of(rules, std::make_unique<OpenFeed>(std::make_unique<EqualRequests>(5, Time{}, 100, 20)));
  CHECK(metrics.figures().slo_attainment == 1);
}

TEST_CASE("a cache is as long on its way whoever brings the first token") {
  RowCost cost;
  SystemRules rules = apart(cost);
  const auto shares = [&] {
    return metrics_of(rules, std::make_unique<OpenFeed>(std::make_unique<SharedSessions>(500))).shares();
  };
  const TimeShares early = shares();
  rules.transfer.brings_first_token = true;
  const TimeShares late = shares();
  CHECK(late.prefill == Approx(early.prefill));
  CHECK(late.handover > early.handover);
  CHECK(late.handover + late.decode == Approx(early.handover + early.decode));
}

// 500 tokens of 1,000 bytes at 1 MB/s: half a second behind the 1.5 ms of the prompt.
TEST_CASE("a forecast knows that users wait for the cache where it brings the first token") {
  RowCost cost;
  SystemRules rules = apart(cost);
  rules.transfer.rate = {1e6};
  rules.transfer.layerwise = false;
  rules.classes[0].goal = {Time{100'000'000}, Time{}};
  rules.admission = {AdmissionPolicy::kPredicted};
  for (const bool brings : {false, true}) {
    rules.transfer.brings_first_token = brings;
    const ServiceMetrics metrics = metrics_of(
        rules, std::make_unique<OpenFeed>(std::make_unique<EqualRequests>(20, Time{1'000'000'000}, 500, 20)));
    CHECK(metrics.classes()[0].completed == (brings ? 0 : 20));
  }
}

}  // namespace moebius
