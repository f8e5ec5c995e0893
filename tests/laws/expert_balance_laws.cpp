// What must hold of experts that a service places, whatever its iterations take.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/routing/random_stream.h"
#include "workloads/serving/system/expert_steps.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {
namespace {

constexpr int kServiceRanks = 8, kRoutedExperts = 32;

// An iteration takes a millisecond and a microsecond a row; of the second part the fullest rank's load is the
// measure; a slice of moves takes a microsecond for each kilobyte that a rank sends.
double even_seconds(const StepPoint& point) {
  return 1e-3 + 1e-6 * static_cast<double>(point.prefill_tokens + point.decode_sequences);
}
double loaded_seconds(const StepPoint& point, double imbalance) {
  return 1e-3 + (even_seconds(point) - 1e-3) * imbalance;
}
double moving_seconds(const StepPoint& point, const PairBytesPtr& bytes) {
  double most = 0;
  for (int rank = 0; bytes && rank < kServiceRanks; ++rank) most = std::max(most, bytes->sent(rank));
  return even_seconds(point) + most * 1e-9;
}

// Two minutes of fifty requests a second.
class SteadyTraffic : public TrafficStream {
 public:
  bool next(TrafficRequest& request) override {
    if (left_-- == 0) return false;
    request = {};
    request.arrival = now_ += Time{20'000'000};
    request.input_tokens = 200 + random_.below(400);
    request.output_tokens = 20 + random_.below(100);
    return true;
  }

 private:
  int left_ = 6000;
  RandomStream random_{5};
  Time now_;
};

Model model() {
  Model model;
  model.layers = 6;
  model.experts.routed = kRoutedExperts;
  model.experts.active = 4;
  return model;
}

struct BalancedRun {
  ServingFigures figures;
  PoolFigures pool;
  std::vector<Rebalance> rebalances;
  double end = 0;
};

struct BalanceSetting {
  ExpertBalancePlan plan;
  Popularity popularity;
  ExpertDrift drift;
};

BalancedRun run(const BalanceSetting& setting, double gain = 0) {
  ExpertCourse course(setting.popularity, setting.drift, 9, model());
  StepSurface even(even_seconds);
  const auto loaded = [gain](const StepPoint& point, double imbalance) {
    return loaded_seconds(point, imbalance) - gain;
  };
  LoadSurfaces loads({even_seconds, loaded, moving_seconds}, kServiceRanks);
  BalancerShape shape{.ranks = kServiceRanks,
                      .ranks_per_node = 4,
                      .slots = setting.plan.slots(kRoutedExperts, kServiceRanks),
                      .groups = {},
                      .expert_bytes = 1e6,
                      .seed = 9};
  ExpertSteps steps({&even, &loads, &course, 1e-3}, setting.plan, shape);
  SystemRules rules;
  PoolRules pool;
  pool.cost = &steps;
  pool.instance.replicas = kServiceRanks;
  pool.instance.replica.page_tokens = 64;
  pool.instance.replica.pages = 2000;
  rules.pools = {pool};
  OpenFeed feed(std::make_unique<SteadyTraffic>());
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  return {system.metrics().figures(), system.pools().front(), steps.balancer().rebalances(),
          system.now().seconds()};
}

BalanceSetting drifting(BalancePolicy policy) {
  BalanceSetting setting;
  setting.popularity.kind = PopularityKind::kZipf;
  setting.popularity.exponent = 0.8;
  setting.drift.correlation = Time{std::int64_t{60} * 1'000'000'000};
  setting.plan.policy = policy;
  setting.plan.redundant = policy == BalancePolicy::kNone ? 0 : 8;
  setting.plan.every = setting.plan.window = Time{std::int64_t{5} * 1'000'000'000};
  return setting;
}

}  // namespace

TEST_CASE("even popularity has nothing to balance: placing changes no figure") {
  BalanceSetting with;
  with.plan = drifting(BalancePolicy::kHierarchical).plan;
  const BalancedRun placed = run(with), plain = run({});
  CHECK(placed.rebalances.empty());
  CHECK(placed.figures.tpot.mean == plain.figures.tpot.mean);
  CHECK(placed.figures.ttft.p99 == plain.figures.ttft.p99);
  CHECK(placed.end == plain.end);
}

TEST_CASE("a loop of placements takes back most of what drift costs, and moves what it says") {
  const BalancedRun off = run(drifting(BalancePolicy::kNone)), once = run(drifting(BalancePolicy::kStatic)),
                    loop = run(drifting(BalancePolicy::kGlobal));
  CHECK(loop.pool.totals.stalls.experts < 0.5 * off.pool.totals.stalls.experts);
  CHECK(loop.pool.totals.stalls.experts < once.pool.totals.stalls.experts);
  CHECK(loop.figures.tpot.mean < off.figures.tpot.mean);
  REQUIRE(loop.rebalances.size() >= 20);
  double slowed = 0;
  for (const Rebalance& of : loop.rebalances) {
    CHECK(of.bytes == 1e6 * static_cast<double>(of.moves));
    slowed += of.slowed;
  }
  CHECK(slowed == Approx(loop.pool.totals.stalls.moves));
  CHECK(slowed > 0);
}

TEST_CASE("what the fullest ranks cost is no less where uneven experts are read faster than even ones") {
  const BalanceSetting setting = drifting(BalancePolicy::kStatic);
  const BalancedRun plain = run(setting), fast = run(setting, 0.5e-3);
  CHECK(fast.figures.tpot.mean < plain.figures.tpot.mean);
  const double a_plain = plain.pool.totals.stalls.experts / static_cast<double>(plain.pool.totals.iterations),
               a_fast = fast.pool.totals.stalls.experts / static_cast<double>(fast.pool.totals.iterations);
  CHECK(a_plain > 0);
  CHECK(a_fast > 0);
  CHECK(a_fast <= a_plain);  // fewer rows come together in shorter iterations
}

TEST_CASE("greedy placement moves less than placing all anew") {
  const BalancedRun greedy = run(drifting(BalancePolicy::kGreedy)),
                    global = run(drifting(BalancePolicy::kGlobal));
  const auto moves = [](const BalancedRun& of) {
    std::int64_t sum = 0;
    for (const Rebalance& rebalance : of.rebalances) sum += rebalance.moves;
    return sum;
  };
  CHECK(moves(greedy) > 0);
  CHECK(moves(greedy) < moves(global) / 2);
}

TEST_CASE("equal seeds make equal runs of placed experts") {
  const BalancedRun one = run(drifting(BalancePolicy::kGreedy)),
                    other = run(drifting(BalancePolicy::kGreedy));
  CHECK(one.end == other.end);
  CHECK(one.figures.tpot.mean == other.figures.tpot.mean);
  CHECK(one.rebalances.size() == other.rebalances.size());
}

}  // namespace moebius
