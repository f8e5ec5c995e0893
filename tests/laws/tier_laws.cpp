// What must hold of tiers below device memory, whatever iterations take.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/laws/block_chain.h"
#include "tests/laws/row_cost.h"
#include "workloads/routing/random_stream.h"
#include "workloads/serving/system/serving_system.h"
#include "workloads/serving/system/tiers/shared_link.h"
#include "workloads/serving/system/tiers/tiered_cache.h"

namespace moebius {
namespace {

using namespace literals;

// Sixty conversations that take turns at random: each turn says all that was said before and something new.
class Conversations : public TrafficStream {
 public:
  explicit Conversations(int requests) : left_(requests) {}
  bool next(TrafficRequest& request) override {
    if (left_-- == 0) return false;
    request = {};
    request.arrival = now_ += Time{static_cast<std::int64_t>(3e7 * random_.unit())};
    const std::size_t which = random_.below(static_cast<std::uint32_t>(said_.size()));
    said_[which] += 1 + random_.below(500);
    if (said_[which] > 6000) said_[which] = 200;
    request.input_tokens = said_[which];
    request.output_tokens = 1 + random_.below(20);
    request.block_tokens = 64;
    for (std::int64_t i = 0; i * 64 < request.input_tokens; ++i)
      request.blocks.push_back(which * 1000 + static_cast<std::uint64_t>(i));
    return true;
  }

 private:
  int left_;
  RandomStream random_{23};
  Time now_;
  std::vector<std::int64_t> said_ = std::vector<std::int64_t>(60, 100);
};

// Blocks of 64 tokens and 1 MB: a millisecond over a host link or a NIC, 0.1 over the memory of a node, 0.25
// to read from a drive and 0.5 to write.
TierRules tiers_of(StepCost& cost, std::int32_t replicas) {
  TierRules rules;
  for (std::int32_t r = 0; r < replicas; ++r) {
    rules.node_of.push_back(r / 2);
    rules.rank_of.push_back(r % 2);
  }
  rules.nodes = (replicas + 1) / 2;
  rules.block_bytes = 1e6;
  rules.block_tokens = 64;
  rules.pieces = 1;
  rules.dram_blocks = 300;
  rules.ssd_blocks = 900;
  rules.host_link = {1e9};
  rules.memory = {1e10};
  rules.ssd_read = {{4e9}, 0, 80_us};
  rules.ssd_write = {{2e9}, 0, 20_us};
  rules.nic = {1e9};
  rules.fabric_latency = 5_us;
  rules.layers = 10;
  rules.cost = &cost;
  rules.replicas = 2;
  rules.token_budget = 8192;
  rules.plan.dram = {300e6};
  rules.plan.ssd = {900e6};
  rules.plan.devices = 1;
  return rules;
}

SystemRules system_of(StepCost& cost) {
  SystemRules rules;
  PoolRules& pool = rules.pools.emplace_back();
  pool.cost = &cost;
  pool.instances = 2;
  pool.instance.replicas = 2;
  pool.instance.load_layers = 10;
  pool.instance.replica.page_tokens = 64;
  pool.instance.replica.pages = 150;
  pool.instance.replica.shared_tokens = 64;
  return rules;
}

struct ConversationRun {
  ServingFigures figures;
  PrefixTotals prefixes;
  std::optional<TierFigures> tiers;
};

ConversationRun converse(const SystemRules& rules, int requests = 1500) {
  OpenFeed feed(std::make_unique<Conversations>(requests));
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  CHECK(system.waiting() == 0);
  return {system.metrics().figures(), system.pools().front().prefixes, system.tiers()};
}

std::vector<TierPlan> plans() {
  std::vector<TierPlan> plans;
  for (const WritePolicy write :
       {WritePolicy::kThrough, WritePolicy::kSelective, WritePolicy::kBack, WritePolicy::kOnEviction})
    for (const PrefetchPolicy prefetch : {PrefetchPolicy::kNone, PrefetchPolicy::kBestEffort,
                                          PrefetchPolicy::kWait, PrefetchPolicy::kTimeout})
      for (const bool cluster : {false, true}) {
        TierPlan plan = {.dram = {300e6},
                         .ssd = {900e6},
                         .device = {},
                         .devices = 1,
                         .cluster = cluster,
                         .staleness = 20_ms,
                         .prefetch = prefetch,
                         .prefetch_limit = 5_ms,
                         .write = write};
        plan.exclusive = write == WritePolicy::kOnEviction && cluster;
        plans.push_back(plan);
      }
  return plans;
}

}  // namespace

TEST_CASE("blocks that are hit and blocks that are missed are all that were asked for") {
  RowCost cost(1e-5);
  SystemRules rules = system_of(cost);
  for (const TierPlan& plan : plans()) {
    rules.pools.front().tiers = tiers_of(cost, 4);
    rules.pools.front().tiers->plan = plan;
    const ConversationRun with = converse(rules);
    const TierFigures& tiers = *with.tiers;
    INFO("write " << static_cast<int>(plan.write) << ", prefetch " << static_cast<int>(plan.prefetch)
                  << ", cluster " << plan.cluster);
    CHECK(with.figures.completed == 1500);
    CHECK(tiers.asked == with.prefixes.asked_blocks);
    CHECK(tiers.hit_device == with.prefixes.hit_blocks);
    CHECK(tiers.hit_device + tiers.hit_dram + tiers.hit_ssd + tiers.hit_remote_dram + tiers.hit_remote_ssd +
              tiers.missed ==
          tiers.asked);
    CHECK(tiers.dram_peak <= 300);
    CHECK(tiers.ssd_peak <= 900);
    CHECK(tiers.prefetch_used + tiers.prefetch_wasted <= tiers.prefetched);
    CHECK((tiers.network_bytes > 0) == plan.cluster);
    CHECK((tiers.prefetched > 0) == (plan.prefetch != PrefetchPolicy::kNone));
  }
}

TEST_CASE("tiers without room are tiers that are absent") {
  RowCost cost(1e-5);
  SystemRules rules = system_of(cost);
  const ConversationRun absent = converse(rules);
  rules.pools.front().tiers = tiers_of(cost, 4);
  rules.pools.front().tiers->dram_blocks = rules.pools.front().tiers->ssd_blocks = 0;
  const ConversationRun empty = converse(rules);
  CHECK(empty.figures.ttft.mean == absent.figures.ttft.mean);
  CHECK(empty.figures.itl.p99 == absent.figures.itl.p99);
  CHECK(empty.prefixes.hit_blocks == absent.prefixes.hit_blocks);
}

TEST_CASE("blocks that come from below shorten the time to the first token") {
  RowCost cost(1e-5);
  SystemRules rules = system_of(cost);
  const ConversationRun alone = converse(rules);
  rules.pools.front().tiers = tiers_of(cost, 4);
  const ConversationRun with = converse(rules);
  CHECK(with.tiers->hit_dram + with.tiers->hit_ssd > 0);
  CHECK(with.figures.ttft.mean < alone.figures.ttft.mean);
  // Drives that are slower than computing are left alone: nothing is lost.
  rules.pools.front().tiers->ssd_read.rate = {1e6};
  rules.pools.front().tiers->dram_blocks = 1;
  const ConversationRun slow = converse(rules);
  CHECK(slow.tiers->hit_ssd == 0);
  CHECK(slow.tiers->recomputed > 0);
}

TEST_CASE("what is asked for ends by its work over what prefetch leaves, whatever is prefetched") {
  RandomStream random(3);
  for (const double share : {0.1, 0.5, 0.9}) {
    SharedLink with(share), without(share);
    Time now;
    for (int i = 0; i < 2000; ++i) {
      now += Time{static_cast<std::int64_t>(1e6 * random.unit())};
      const double work = 1e-3 * random.unit();
      if (random.below(2) == 0) {
        with.prefetch(now, work);
        continue;
      }
      // From when it begins, which is when all that was asked for before has ended.
      const Time start = std::max(now, with.free());
      const Time end = with.demand(now, work);
      REQUIRE((end - start).seconds() <= work / (1 - share) + 2e-9);
      REQUIRE(end >= start + time_from_seconds(work * (1 - 1e-6)));
      without.demand(now, work);
      REQUIRE(with.free() >= without.free() - 2_ns);
    }
  }
}

TEST_CASE("a link never does more than its rate") {
  // All work that was taken has ended by the end of the last: at no more than a second of work a second.
  SharedLink link(0.4);
  RandomStream random(8);
  Time now, last;
  double work = 0;
  for (int i = 0; i < 5000; ++i) {
    now += Time{static_cast<std::int64_t>(2e5 * random.unit())};
    const double some = 1e-3 * random.unit();
    work += some;
    last = std::max(last, random.below(3) == 0 ? link.prefetch(now, some).end : link.demand(now, some));
  }
  CHECK(work <= last.seconds() + 1e-6);
}

TEST_CASE("a load takes as long as its slowest way, and comes behind what is there before it") {
  // Ten blocks of host memory: ten milliseconds over the host link; a second load waits for the first.
  RowCost cost(1e-5);
  TierRules rules = tiers_of(cost, 2);
  rules.plan.always_load = true;
  TieredCache cache(rules);
  const std::vector<kv::BlockHash> one = chain_of(100, 10), other = chain_of(200, 10);
  cache.below(0).computed(one, 0, {});
  cache.below(0).computed(other, 0, {});
  const LoadedBlocks first = cache.below(0).load({1, 1000, one, 0, 1000_ms});
  CHECK(first.blocks == 10);
  CHECK((first.ready - 1000_ms).seconds() == Approx(10e-3));
  const LoadedBlocks second = cache.below(0).load({2, 1000, other, 4, 1000_ms});
  CHECK(second.blocks == 6);
  CHECK((second.ready - 1000_ms).seconds() == Approx(16e-3));
  // The other replica of the node has a link of its own, and the same host memory.
  const LoadedBlocks third = cache.below(1).load({3, 1000, one, 0, 2000_ms});
  CHECK((third.ready - 2000_ms).seconds() == Approx(10e-3));
}

TEST_CASE("an inclusive tier keeps what comes up and an exclusive one gives it away") {
  RowCost cost(1e-5);
  for (const bool exclusive : {false, true}) {
    TierRules rules = tiers_of(cost, 2);
    rules.plan.always_load = true;
    rules.plan.write = WritePolicy::kOnEviction;
    rules.plan.exclusive = exclusive;
    TieredCache cache(rules);
    const std::vector<kv::BlockHash> chain = chain_of(100, 8);
    std::vector<kv::EvictedBlock> gone;
    for (std::int32_t i = 7; i >= 0; --i) gone.push_back({chain[i], chain[i == 0 ? 0 : i - 1], i, 1});
    cache.below(0).take_in(gone, {});
    CHECK(cache.find(0, chain, 0, 1000_ms).dram == 8);
    CHECK(cache.below(0).load({1, 1000, chain, 0, 1000_ms}).blocks == 8);
    CHECK(cache.find(0, chain, 0, 2000_ms).dram == (exclusive ? 0 : 8));
  }
}

TEST_CASE("other nodes know of a block when the index has told them, and ask in vain for one that has gone") {
  RowCost cost(1e-5);
  TierRules rules = tiers_of(cost, 4);
  rules.plan.cluster = true;
  rules.plan.always_load = true;
  rules.plan.staleness = 20_ms;
  rules.plan.write = WritePolicy::kBack;
  rules.dram_blocks = 4;
  rules.ssd_blocks = 0;
  TieredCache cache(rules);
  const std::vector<kv::BlockHash> chain = chain_of(100, 4), next = chain_of(200, 4);
  // Copied down in 4 ms; known 20 ms later to node 1, at once to node 0.
  cache.below(0).computed(chain, 0, {});
  CHECK(cache.find(2, chain, 0, 23_ms).elsewhere == 0);
  CHECK(cache.find(0, chain, 0, 23_ms).dram == 4);
  CHECK(cache.find(2, chain, 0, 25_ms).elsewhere == 4);
  // Four others take their place at 104 ms; that is known at 124.
  cache.below(0).computed(next, 0, 100_ms);
  const LoadedBlocks vain = cache.below(2).load({7, 1000, chain, 0, 110_ms});
  CHECK(vain.blocks == 0);
  CHECK(vain.ready == 110_ms + 10_us);
  CHECK(cache.figures().stale == 1);
  CHECK(cache.below(2).load({8, 1000, chain, 0, 130_ms}).ready == 130_ms);
  CHECK(cache.figures().stale == 1);
}

TEST_CASE("a request waits for what was sent for, or up to the limit") {
  // Eight blocks of the drives, half a rate: 8 x 0.25 / 0.5 = 4 ms and the latency.
  RowCost cost(1e-5);
  TierRules rules = tiers_of(cost, 2);
  rules.dram_blocks = 8;
  rules.plan.write = WritePolicy::kThrough;
  rules.plan.prefetch_budget = 0.5;
  const std::vector<kv::BlockHash> chain = chain_of(100, 8), other = chain_of(200, 8);
  for (const PrefetchPolicy policy :
       {PrefetchPolicy::kBestEffort, PrefetchPolicy::kWait, PrefetchPolicy::kTimeout}) {
    rules.plan.prefetch = policy;
    rules.plan.prefetch_limit = 1_ms;
    TieredCache cache(rules);
    cache.below(0).computed(chain, 0, {});
    cache.below(0).computed(other, 0, 100_ms);  // which take the place of the first ones
    CHECK(cache.find(0, chain, 0, 1000_ms).ssd == 8);
    const Time start = cache.arrived(0, {1, 513, chain, 0, 1000_ms});
    CHECK(cache.below(0).may_start(1, start));
    if (policy == PrefetchPolicy::kBestEffort) CHECK(start == 1000_ms);
    if (policy == PrefetchPolicy::kTimeout) CHECK(start == 1001_ms);
    if (policy == PrefetchPolicy::kWait) {
      CHECK((start - 1000_ms).seconds() == Approx(4e-3 + 80e-6));
      CHECK(!cache.below(0).may_start(1, start - 1_ns));
    }
    // What waits for its request is not taken away by others meanwhile.
    cache.below(0).computed(chain_of(300, 8), 0, 1000_ms);
    CHECK(cache.find(0, chain, 0, start).dram == 8);
  }
}

// Ten blocks of the other node for each replica of this one: ten milliseconds of a NIC.
TEST_CASE("blocks of other nodes come one after the other to replicas that share a NIC") {
  RowCost cost(1e-5);
  for (const int sharing : {1, 2}) {
    TierRules rules = tiers_of(cost, 4);
    rules.plan.cluster = rules.plan.always_load = true;
    rules.replicas_on_nic = sharing;
    TieredCache cache(rules);
    const std::vector<kv::BlockHash> one = chain_of(100, 10), other = chain_of(200, 10);
    cache.below(2).computed(one, 0, {});
    cache.below(3).computed(other, 0, {});
    const LoadedBlocks first = cache.below(0).load({1, 1000, one, 0, 1000_ms});
    const LoadedBlocks second = cache.below(1).load({2, 1000, other, 0, 1000_ms});
    REQUIRE(first.blocks + second.blocks == 20);
    CHECK((first.ready - 1000_ms).seconds() == Approx(10e-3 + 10e-6));
    CHECK((second.ready - 1000_ms).seconds() == Approx(10e-3 * sharing + 10e-6));
  }
}

TEST_CASE("blocks that leave are written where the policy says") {
  RowCost cost(1e-5);
  const auto written = [&](WritePolicy write, bool second_use) {
    TierRules rules = tiers_of(cost, 2);
    rules.dram_blocks = 8;
    rules.plan.write = write;
    rules.plan.ssd_second_use = second_use;
    TieredCache cache(rules);
    const std::vector<kv::BlockHash> chain = chain_of(100, 8), other = chain_of(200, 8);
    cache.below(0).computed(chain, 0, {});
    cache.below(0).computed(other, 0, 100_ms);
    return cache.figures();
  };
  // Both chains go down, and the first one further down, its room being needed.
  CHECK(written(WritePolicy::kBack, false).from_device_bytes == 16e6);
  CHECK(written(WritePolicy::kBack, false).ssd_written_bytes == 8e6);
  CHECK(written(WritePolicy::kThrough, false).ssd_written_bytes == 16e6);
  CHECK(written(WritePolicy::kBack, true).ssd_written_bytes == 0);
  CHECK(written(WritePolicy::kSelective, false).from_device_bytes == 0);
  CHECK(written(WritePolicy::kOnEviction, false).from_device_bytes == 0);
}

// Sixteen blocks in turn on the drives of two other nodes, 4 ms each: 32 ms for the eight of each node, 16
// over the NIC that takes them in. They are computed in 1 + 1,024 x 23 us = 24.6 ms: sooner, however they
// lie.
TEST_CASE("blocks of one drive are read one after the other though others lie between them") {
  RowCost cost(23e-6);
  for (const bool always : {false, true}) {
    TierRules rules = tiers_of(cost, 6);
    rules.plan.cluster = true;
    rules.plan.always_load = always;
    rules.plan.write = WritePolicy::kOnEviction;
    rules.dram_blocks = 0;
    rules.ssd_read = {{2.5e8}, 0, {}};
    TieredCache cache(rules);
    const std::vector<kv::BlockHash> chain = chain_of(100, 16);
    for (std::int32_t i = 15; i >= 0; --i) {
      const kv::EvictedBlock block{chain[i], chain[i == 0 ? 0 : i - 1], i, 1};
      cache.below(i % 2 == 0 ? 2 : 4).take_in({&block, 1}, {});
    }
    const LoadedBlocks loaded = cache.below(0).load({1, 1025, chain, 0, 1000_ms});
    CHECK(loaded.blocks == (always ? 16 : 0));
    if (always) CHECK((loaded.ready - 1000_ms).seconds() == Approx(32e-3).margin(1e-4));
  }
}

TEST_CASE("what is used in device memory leaves the tiers below after what is not") {
  RowCost cost(1e-5);
  for (const bool second_use : {false, true}) {
    TierRules rules = tiers_of(cost, 2);
    rules.dram_blocks = 8;
    rules.plan.ssd_second_use = second_use;
    TieredCache cache(rules);
    const std::vector<kv::BlockHash> hot = chain_of(100, 4), cold = chain_of(200, 4);
    cache.below(0).computed(hot, 0, {});
    cache.below(0).computed(cold, 0, 100_ms);
    CHECK(cache.below(0).load({1, 257, hot, 4, 200_ms}).blocks == 0);  // all of it is on the device
    cache.below(0).computed(chain_of(300, 4), 0, 300_ms);
    CHECK(cache.find(0, hot, 0, 1000_ms).dram == 4);
    CHECK(cache.find(0, cold, 0, 1000_ms).dram == 0);
    cache.below(0).computed(chain_of(400, 8), 0, 2000_ms);  // now they go, used twice
    CHECK(cache.find(0, hot, 0, 3000_ms).ssd == 4);
    CHECK(cache.find(0, cold, 0, 3000_ms).ssd == (second_use ? 0 : 4));
  }
}

}  // namespace moebius
