// What must hold of blocks that are sent for before a request needs them.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/laws/block_chain.h"
#include "workloads/serving/system/tiers/tiered_cache.h"
#include "workloads/serving/system/tiers/turn_forecast.h"

namespace moebius {
namespace {

using namespace literals;

class NoCost : public StepCost {
 public:
  double seconds(std::span<const StepShape>) override { return 1e-3; }
};

// Blocks of 1 MB, 0.25 ms to read from a drive; one replica whose node has room for 8 in host memory.
TierRules rules_of(StepCost& cost, PrefetchAhead ahead) {
  TierRules rules;
  rules.node_of = {0};
  rules.rank_of = {0};
  rules.block_bytes = 1e6;
  rules.block_tokens = 64;
  rules.dram_blocks = 8;
  rules.ssd_blocks = 10'000;
  rules.host_link = {1e9};
  rules.memory = {1e10};
  rules.ssd_read = {{4e9}, 0, 80_us};
  rules.ssd_write = {{2e9}, 0, 20_us};
  rules.nic = {1e9};
  rules.layers = 10;
  rules.cost = &cost;
  rules.plan.dram = {8e6};
  rules.plan.ssd = {10e9};
  rules.plan.devices = 1;
  rules.plan.queue_depth = 1024;
  rules.plan.write = WritePolicy::kThrough;
  rules.plan.prefetch = PrefetchPolicy::kBestEffort;
  rules.plan.prefetch_budget = 0.5;
  rules.plan.ahead = ahead;
  return rules;
}

// Sixteen sessions have two turns, a second apart; then one has its first turn at 30 s, and another prompt
// takes its place in host memory. What the tiers did when something comes at 31.5 s.
TierFigures after_sessions(PrefetchAhead ahead, Time& ready) {
  NoCost cost;
  TieredCache cache(rules_of(cost, ahead));
  const auto turn = [&](kv::BlockHash session, std::int64_t blocks, Time now) {
    const std::vector<kv::BlockHash> chain = chain_of(1000 * session, blocks);
    cache.arrived(0, {static_cast<std::int32_t>(session), 64, chain, blocks, now});
    cache.below(0).computed(chain, 0, now);
  };
  for (std::int64_t session = 1; session <= 16; ++session) {
    turn(session, 4, Time{session * 1'000'000'000});
    turn(session, 6, Time{(session + 1) * 1'000'000'000 - 1});
  }
  turn(100, 8, 30_s);
  cache.below(0).computed(chain_of(200'000, 8), 0, Time{30'100'000'000});
  const std::vector<kv::BlockHash> chain = chain_of(100'000, 8);
  CHECK(cache.find(0, chain, 0, Time{30'200'000'000}).ssd == 8);
  cache.arrived(0, {300, 64, chain_of(300'000, 1), 1, Time{31'500'000'000}});
  ready = cache.below(0).load({7, 600, chain, 0, 33_s}).ready;
  return cache.figures();
}

}  // namespace

TEST_CASE("pauses between turns are known after sixteen of them, and the tenth percentile counts") {
  TurnForecast forecast(PrefetchAhead::kSession);
  ExpectedChain due;
  for (std::int64_t i = 0; i < 16; ++i) {
    const std::vector<kv::BlockHash> first = chain_of(static_cast<kv::BlockHash>(100 * i), 3);
    const std::vector<kv::BlockHash> second = chain_of(static_cast<kv::BlockHash>(100 * i), 5);
    forecast.came(0, first, Time{1'000'000'000 * i});
    CHECK(!forecast.take_due(Time{1'000'000'000 * i}, due));
    forecast.came(0, second, Time{1'000'000'000 * i + 10'000'000 * (i + 1)});  // 10, 20, ... 160 ms later
  }
  CHECK(forecast.pause_of_sessions() == 20_ms);  // the second of sixteen
  // The last turn of all was the sixteenth pause, so that its own next one is expected.
  CHECK(!forecast.take_due(Time{15'000'000'000 + 160'000'000 + 19'000'000}, due));
  REQUIRE(forecast.take_due(Time{15'000'000'000 + 160'000'000 + 20'000'000}, due));
  CHECK(due.chain == chain_of(1500, 5));
}

TEST_CASE("what requests of one kind begin with is expected after the shortest of their last four pauses") {
  TurnForecast forecast(PrefetchAhead::kPattern);
  ExpectedChain due;
  Time now;
  for (const std::int64_t pause : {0, 5, 3, 4, 6}) {
    now += Time{pause * 1'000'000'000};
    std::vector<kv::BlockHash> chain = chain_of(10, 4);  // the prompt of the system, and a task of its own
    chain.push_back(static_cast<kv::BlockHash>(1000 + now.ns));
    CHECK(!forecast.take_due(now, due));
    forecast.came(2, chain, now);
  }
  CHECK(!forecast.take_due(now + Time{2'999'999'999}, due));
  REQUIRE(forecast.take_due(now + 3_s, due));
  CHECK(due.chain == chain_of(10, 4));
  CHECK(due.replica == 2);
}

TEST_CASE("a session's blocks are in host memory again when its next turn is due") {
  // 8 blocks of the drives at half their rate: 4 ms and the latency, all of it before 33 s. Without, the load
  // waits for the drives: 8 x 0.25 ms and the latency, behind them the link.
  Time ahead, none;
  const TierFigures with = after_sessions(PrefetchAhead::kSession, ahead);
  const TierFigures without = after_sessions(PrefetchAhead::kNone, none);
  CHECK(without.prefetched_ahead == 0);
  CHECK(with.prefetched_ahead >= 8);
  CHECK(with.prefetched == with.prefetched_ahead);
  CHECK(with.hit_dram == without.hit_dram + 8);
  CHECK(with.hit_ssd == without.hit_ssd - 8);
  CHECK(with.prefetch_used >= 8);
  CHECK(ahead < none);
}

TEST_CASE("what is sent for ahead never takes more than its share from what is asked for") {
  // Whatever was sent for ahead, 100 reads that are asked for then (25 ms of the drives alone) end within
  // 25 / (1 - 0.5) = 50 ms and the way up.
  NoCost cost;
  TierRules rules = rules_of(cost, PrefetchAhead::kPattern);
  rules.dram_blocks = 500;
  rules.host_link = {1e12};
  rules.plan.always_load = true;
  TieredCache cache(rules);
  const std::vector<kv::BlockHash> kind = chain_of(1, 200), asked = chain_of(5000, 100);
  cache.below(0).computed(kind, 0, {});
  cache.below(0).computed(asked, 0, {});
  cache.below(0).computed(chain_of(9000, 500), 0, 1_s);  // takes their place in host memory
  for (std::int64_t i = 0; i <= 4; ++i) cache.arrived(0, {1, 64, kind, 200, Time{(10 + i) * 1'000'000'000}});
  cache.arrived(0, {2, 64, chain_of(70'000, 1), 1, 15_s});
  CHECK(cache.figures().prefetched_ahead == 200);
  const Time end = cache.below(0).load({3, 6401, asked, 0, 15_s}).ready;
  CHECK((end - 15_s).seconds() <= 0.050 + 1e-3);
  CHECK((end - 15_s).seconds() > 0.030);  // it was felt
}

// Eight blocks of the drives come to host memory for a request that waits, and from there to the device.
TEST_CASE("what an exclusive tier sends for leaves the drives") {
  NoCost cost;
  TierRules rules = rules_of(cost, PrefetchAhead::kNone);
  rules.plan.always_load = rules.plan.exclusive = true;
  rules.plan.write = WritePolicy::kOnEviction;
  rules.plan.prefetch = PrefetchPolicy::kWait;
  TieredCache cache(rules);
  const std::vector<kv::BlockHash> chain = chain_of(100, 8);
  for (const kv::BlockHash first : {100, 200}) {  // the others drive them out
    std::vector<kv::EvictedBlock> gone;
    for (kv::BlockHash i = 8; i-- > 0;)
      gone.push_back({first + i, first + (i == 0 ? 0 : i - 1), static_cast<std::int32_t>(i), 1});
    cache.below(0).take_in(gone, first == 100 ? 0_ms : 100_ms);
  }
  CHECK(cache.find(0, chain, 0, 1000_ms).ssd == 8);
  const Time start = cache.arrived(0, {1, 513, chain, 0, 1000_ms});
  CHECK(cache.find(0, chain, 0, start).dram == 8);
  CHECK(cache.below(0).load({1, 513, chain, 0, start}).blocks == 8);
  CHECK(cache.find(0, chain, 0, start).dram == 0);
  CHECK(cache.find(0, chain, 0, start).ssd == 0);
}

}  // namespace moebius
