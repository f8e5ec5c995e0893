// Classes of requests, pools of different chips, admission and routers: what must hold of them whatever
// iterations take.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/laws/row_cost.h"
#include "tests/unit/serving/even_traffic.h"

namespace moebius {

TEST_CASE("requests in a service are on average their rate times how long they stay") {
  // Little 1961: both sides are the same sum, of all stays over the time.
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 2)};
  const Run one = run(rules);
  const double time = one.span.seconds();
  CHECK(one.mean_present == Approx(one.figures.e2e.mean * 400 / time).epsilon(1e-6));
}

// The first class is promised nothing, the second what nobody can keep: of those promised something none is.
TEST_CASE("who is promised nothing does not count among those who keep their promise") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 2)};
  rules.classes = {{}, promised(1e-6)};
  const Run mixed = run(rules);
  CHECK(mixed.classes[0].met == mixed.classes[0].submitted);
  CHECK(mixed.figures.slo_attainment == 0);
  rules.classes[1] = promised(1000);
  const Run kept = run(rules);
  CHECK(kept.figures.slo_attainment == 1);
  CHECK(kept.figures.goodput_rps ==
        Approx(static_cast<double>(kept.classes[1].submitted) / kept.span.seconds()));
}

TEST_CASE("what is turned away and what is completed are all that came; all others get what they asked for") {
  // A prompt takes 1 + 6.4 ms and comes every 2 ms: two of three are late, whoever waits.
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  rules.classes = {promised(0.05)};
  for (const AdmissionPolicy policy : {AdmissionPolicy::kQueueLimit, AdmissionPolicy::kPredicted}) {
    rules.admission = {policy, 4};
    const Run of = run(rules, {.gap = {2'000'000}});
    CHECK(of.classes[0].submitted == 400);
    CHECK(of.classes[0].rejected > 100);
    CHECK(of.classes[0].turned_away == of.classes[0].rejected);
    CHECK(of.classes[0].completed == 400 - of.classes[0].rejected);
    CHECK(outputs(of, 0) == 20 * of.classes[0].completed);
  }
}

TEST_CASE("a service that turns away whom it forecasts to be late keeps its promise more often") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  rules.classes = {promised(0.05)};
  const Run without = run(rules, {.gap = {2'000'000}});
  rules.admission.policy = AdmissionPolicy::kPredicted;
  const Run with = run(rules, {.gap = {2'000'000}});
  CHECK(with.classes[0].met > 3 * without.classes[0].met);
}

TEST_CASE("admission that turns nobody away is as none") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 2)};
  const Run none = run(rules);
  rules.admission = {AdmissionPolicy::kQueueLimit, 1 << 20};
  const Run limit = run(rules);
  rules.admission = {AdmissionPolicy::kPredicted, 0};  // nothing is promised
  const Run predicted = run(rules);
  for (const Run* other : {&limit, &predicted}) {
    CHECK(other->figures.e2e.mean == none.figures.e2e.mean);
    CHECK(other->figures.itl.p99 == none.figures.itl.p99);
  }
}

TEST_CASE("on equal pools without load every router gives the latencies of taking turns") {
  // One request at a time: a prompt and nineteen tokens take 26 ms, and they come every 100 ms.
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1), paged_pool(PoolRole::kBoth, cost, 1)};
  const Asked asked{.requests = 50, .gap = {100'000'000}};
  const Run turns = run(rules, asked);
  for (const RouterPolicy policy : {RouterPolicy::kLeastRequests, RouterPolicy::kLeastTokens,
                                    RouterPolicy::kKvAware, RouterPolicy::kSlaAware}) {
    rules.router = policy;
    const Run other = run(rules, asked);
    CHECK(other.figures.ttft.mean == turns.figures.ttft.mean);
    CHECK(other.figures.e2e.p99 == turns.figures.e2e.p99);
  }
}

namespace {

// By forecasts, at twelve times the price.
SystemRules cheap_and_dear(LinearCost& cheap, LinearCost& dear) {
  SystemRules rules;
  rules.router = RouterPolicy::kSlaAware;
  rules.pools = {paged_pool(PoolRole::kBoth, cheap, 1), paged_pool(PoolRole::kBoth, dear, 1)};
  rules.pools[0].usd_per_second = 1;
  rules.pools[1].usd_per_second = 12;
  return rules;
}

}  // namespace

TEST_CASE("the cheapest pool that keeps the promise is taken and the dear one only where it would miss") {
  // A prompt takes 7.4 ms on the slow pool and 2.1 ms on the fast one, at three times the price.
  LinearCost slow(1000, 10), fast(500, 2.5);
  SystemRules rules = cheap_and_dear(slow, fast);
  const Asked asked{.requests = 50, .gap = {100'000'000}};
  rules.classes = {promised(0.01)};
  CHECK(outputs(run(rules, asked), 1) == 0);
  rules.classes = {promised(0.005)};
  CHECK(outputs(run(rules, asked), 0) == 0);
  rules.classes = {promised(0)};
  CHECK(outputs(run(rules, asked), 1) == 0);
}

TEST_CASE("under load the dear pool takes what would be late on the cheap one") {
  LinearCost slow(1000, 10), fast(500, 2.5);
  SystemRules rules = cheap_and_dear(slow, fast);
  rules.classes = {promised(0.02)};
  const Run both = run(rules, {.gap = {5'000'000}});
  CHECK(outputs(both, 0) > 0);
  CHECK(outputs(both, 1) > 0);
  CHECK(both.classes[0].met > 320);
}

// Prompts come every 5 ms and take the cheap pool 6.4 ms each, however many share an iteration of up to 84
// ms.
TEST_CASE("who is promised nothing goes where it is cheapest until there is a queue") {
  LinearCost slow(1000, 10), fast(500, 2.5);
  SystemRules rules = cheap_and_dear(slow, fast);
  const Run both = run(rules, {.gap = {5'000'000}});
  CHECK(outputs(both, 0) > outputs(both, 1));
  CHECK(outputs(both, 1) > 0);
  CHECK(both.figures.ttft.p99 < 0.3);
}

TEST_CASE("a forecast of a request that is alone is what it then takes") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.router = RouterPolicy::kSlaAware;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  const Run alone = run(rules, {.requests = 20, .gap = {100'000'000}});
  CHECK(alone.forecasts.requests == 20);
  CHECK(alone.forecasts.error < 1e-6);
}

// Two guesses of which 0.8 hold, each in turn, bring 2.44 tokens an iteration: the 1.03 ms of one sequence
// are 0.42 ms a token, which has to be within 0.6. Where none holds it is more than 1.
TEST_CASE("guesses of one share by their places are forecast as guesses of that share") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  rules.classes = {promised(0, 0.0006)};
  rules.admission.policy = AdmissionPolicy::kPredicted;
  const auto taken = [&](const Speculation& speculation) {
    rules.pools[0].instance.replica.speculation = speculation;
    return run(rules, {.gap = {2'000'000}}).classes[0].completed;
  };
  const std::int64_t by_one = taken({.drafts = 2, .acceptance = 0.8});
  CHECK(by_one > 40);
  CHECK(by_one < 360);
  CHECK(taken({.drafts = 2, .by_place = {0.8, 0.8}}) == by_one);
  CHECK(taken({.drafts = 2, .by_place = {0, 0}}) == 0);
}

TEST_CASE("a router that knows caches finds more of them than taking turns") {
  // Four requests share a prompt; by turns on three replicas, three of the four compute it.
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 3)};
  rules.pools[0].instance.replica.shared_tokens = 64;
  const auto hits = [&](RouterPolicy policy) {
    rules.router = policy;
    return run(rules, {.gap = {30'000'000}}).pools[0].prefixes.hit_blocks;
  };
  const std::int64_t turns = hits(RouterPolicy::kRoundRobin), aware = hits(RouterPolicy::kKvAware);
  CHECK(turns == 100 * 10);  // the fourth finds what the first left
  CHECK(aware == 100 * 3 * 10);
}

// Eight prompts of one moment end together on eight replicas, and their caches go to eight others: one row
// each makes an iteration of 1.01 ms; all eight on the one that had the least before would make 1.08 ms.
TEST_CASE("what is on its way to a replica counts as its load") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kPrefill, cost, 1), paged_pool(PoolRole::kDecode, cost, 1)};
  rules.transfer = {.bytes_per_token = 1000, .rate = {1e9}, .latency = {}, .layers = 10, .layerwise = false};
  for (PoolRules& pool : rules.pools) pool.instance.replicas = 8;
  struct Choice {
    RouterPolicy router;
    ReplicaBalance balance;
  };
  for (const Choice& by : {Choice{RouterPolicy::kKvAware, ReplicaBalance::kTokens},
                           Choice{RouterPolicy::kSlaAware, ReplicaBalance::kTokens},
                           Choice{RouterPolicy::kLeastTokens, ReplicaBalance::kTokens},
                           Choice{RouterPolicy::kLeastRequests, ReplicaBalance::kRequests}}) {
    rules.router = by.router;
    for (PoolRules& pool : rules.pools) pool.instance.balance = by.balance;
    const Run together = run(rules, {.requests = 8, .gap = {}});
    CHECK(together.figures.itl.p50 == Approx(0.00101).epsilon(0.02));
  }
}

TEST_CASE("a class of higher priority waits less and the other one more") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  rules.pools[0].instance.replica.token_budget = 640;
  rules.classes = {promised(1), promised(1)};
  const Asked asked{.gap = {7'000'000}};
  const Run equal = run(rules, asked);
  rules.classes[1].priority = 1;
  const Run urgent = run(rules, asked);
  CHECK(urgent.classes[1].ttft.mean() < 0.5 * equal.classes[1].ttft.mean());
  CHECK(urgent.classes[0].ttft.mean() > equal.classes[0].ttft.mean());
  CHECK(urgent.classes[0].completed + urgent.classes[1].completed == 400);
}

TEST_CASE("classes get their shares of the requests and keep to their pools") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1), paged_pool(PoolRole::kBoth, cost, 1)};
  rules.classes = {promised(1), promised(1)};
  rules.classes[0].share = 3;
  rules.classes[0].pools = 1;
  rules.classes[1].pools = 2;
  const Run of = run(rules, {.requests = 2000});
  // Binomial with a mean of 1,500 and a deviation of 19.
  CHECK(of.classes[0].completed == Approx(1500).margin(80));
  CHECK(of.pools[0].tokens[1].output == 0);
  CHECK(of.pools[1].tokens[0].output == 0);
  CHECK(outputs(of, 0) == 20 * of.classes[0].completed);
}

TEST_CASE("prompts that are too long for a class are in another one") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  rules.classes = {promised(1), promised(1)};
  rules.classes[0].longest_input = 639;
  CHECK(run(rules).classes[0].submitted == 0);
  rules.classes[0].longest_input = 640;
  CHECK(run(rules).classes[0].submitted == Approx(200).margin(40));
}

TEST_CASE("prompts of two pools are decoded by three others and every cache moves once") {
  LinearCost quick(500, 5), slow(1000, 10);
  SystemRules rules;
  rules.router = RouterPolicy::kLeastTokens;
  rules.pools = {paged_pool(PoolRole::kPrefill, quick, 1), paged_pool(PoolRole::kPrefill, slow, 2),
                 paged_pool(PoolRole::kDecode, quick, 2), paged_pool(PoolRole::kDecode, slow, 1),
                 paged_pool(PoolRole::kDecode, slow, 1)};
  rules.transfer = {.bytes_per_token = 1000, .rate = {1e9}, .latency = {}, .layers = 10, .layerwise = true};
  const Run of = run(rules, {.gap = {3'000'000}});
  CHECK(of.classes[0].completed == 400);
  CHECK(outputs(of, 2) + outputs(of, 3) + outputs(of, 4) == 400 * 20);
  for (const std::size_t pool : {0, 1}) CHECK(of.pools[pool].tokens[0].input > 0);
  for (const std::size_t pool : {2, 3, 4}) CHECK(outputs(of, pool) > 0);
}

TEST_CASE("of twice what a service can do a good part keeps its promise: not all are a little late") {
  // A prompt takes an iteration of 7.4 ms; four instances are asked for one every millisecond.
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 2), paged_pool(PoolRole::kBoth, cost, 2)};
  rules.classes = {promised(1, 0.015)};
  const Asked asked{.requests = 2000, .gap = {1'000'000}};
  const std::int64_t in_turn = run(rules, asked).classes[0].met;
  rules.router = RouterPolicy::kSlaAware;
  const std::int64_t met = run(rules, asked).classes[0].met;
  CHECK(met > 430);
  CHECK(met > in_turn);
}

TEST_CASE("a link to a pool adds its latency both ways and the time of the bytes") {
  // 640 tokens of 4 bytes at 1 MB/s take 2.56 ms, a token that comes back 4 us; one request at a time.
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  const Asked asked{.requests = 20, .gap = {100'000'000}};
  const Run here = run(rules, asked);
  rules.pools[0].wan = WanRules{{20'000'000}, {1e6}};
  const Run there = run(rules, asked);
  CHECK(there.figures.ttft.mean == Approx(here.figures.ttft.mean + 0.04 + 2.56e-3 + 4e-6));
  CHECK(there.figures.e2e.mean == Approx(here.figures.e2e.mean + 0.04 + 2.56e-3 + 4e-6));
  CHECK(there.figures.tpot.mean == Approx(here.figures.tpot.mean));
  CHECK(there.pools[0].wan.in_bytes == 20 * 640 * 4);
  CHECK(there.pools[0].wan.out_bytes == 20 * 20 * 4);
}

TEST_CASE("prompts that all pass one link come no faster than it carries them") {
  // 400 prompts of 2,560 bytes at 100 kB/s: 10.24 s, though they were sent within 4 s.
  LinearCost cost(10, 0.1);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  rules.pools[0].wan = WanRules{{}, {1e5}};
  CHECK(run(rules).span.seconds() == Approx(10.24).margin(0.05));
}

TEST_CASE("a forecast knows what the host takes before a request can wait") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  rules.pools[0].instance.host.reception = Time{100'000'000};
  rules.classes = {promised(10)};
  rules.admission = {AdmissionPolicy::kPredicted};
  const Run of = run(rules, {.requests = 20, .gap = {1'000'000'000}});
  REQUIRE(of.forecasts.requests == 20);
  CHECK(of.forecasts.error / 20 < 0.05);
}

namespace {

// Twenty milliseconds more for each image of the replica that has most.
class ImageCost : public LinearCost {
 public:
  using LinearCost::LinearCost;
  double seconds(std::span<const StepShape> replicas) override {
    std::int32_t most = 0;
    for (const StepShape& shape : replicas) most = std::max(most, shape.images);
    return LinearCost::seconds(replicas) + 0.02 * most;
  }
};

}  // namespace

// Two images take 40 ms and the prompt 7.4; a promise of 30 ms is kept for nobody.
TEST_CASE("a forecast counts the images that a replica encodes before a prompt") {
  ImageCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  rules.admission = {AdmissionPolicy::kPredicted};
  rules.classes = {promised(10)};
  const Asked asked{.requests = 20, .gap = {1'000'000'000}, .images = 2};
  const Run of = run(rules, asked);
  REQUIRE(of.forecasts.requests == 20);
  CHECK(of.forecasts.error < 1e-6);
  rules.classes = {promised(0.03)};
  CHECK(run(rules, asked).classes[0].turned_away == 20);
}

// A thousand of something within five seconds behind a long silence: of 15 seconds, not of 1,005.
TEST_CASE("what has grown lately is not spread over a silence before it") {
  RecentRate rate;
  CHECK(rate.at(Time{}, 0) == 0);
  CHECK(rate.at(Time{1'000'000'000'000}, 0) == 0);
  CHECK(rate.at(Time{1'005'000'000'000}, 1000) == Approx(1000 / 15.0));
  // One in 30 seconds stays one in 30 seconds.
  RecentRate slow;
  for (int i = 1; i < 5; ++i) CHECK(slow.at(Time{30'000'000'000 * i}, i) == Approx(1 / 30.0));
}

// Alone a token takes 1.01 ms of the device and 5 of the host, whichever of its stages takes them.
TEST_CASE("a forecast counts what the host does with tokens as what it does before an iteration") {
  LinearCost cost(1000, 10);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  rules.classes = {promised(10, 4e-3)};
  rules.admission = {AdmissionPolicy::kPredicted};
  for (Time HostCosts::* const stage :
       {&HostCosts::per_iteration, &HostCosts::per_sequence, &HostCosts::per_sample, &HostCosts::per_token}) {
    rules.pools[0].instance.host = {};
    rules.pools[0].instance.host.*stage = Time{5'000'000};
    CHECK(run(rules, {.requests = 20, .gap = {1'000'000'000}}).classes[0].turned_away == 20);
  }
  // Behind the launch they hide the device's, whether the loop works ahead or not.
  HostCosts& host = rules.pools[0].instance.host = {};
  host.per_submission = Time{5'000'000};
  for (const bool overlapped : {false, true}) {
    host.overlapped = overlapped;
    CHECK(run(rules, {.requests = 20, .gap = {1'000'000'000}}).classes[0].turned_away == 20);
  }
}

}  // namespace moebius
