// Dispatch and combine take on an idle network what the model of their kernels says.
#include "sim/traffic/expert_exchange.h"

#include <catch2/catch.hpp>

#include "sim/traffic/step_builder.h"
#include "tests/laws/small_world.h"
#include "workloads/cost/exchange_kernels.h"

using namespace moebius;

namespace {

RouteSpec spec_of(int tokens) {
  RouteSpec spec;
  spec.seed = 3;
  spec.ranks = 16;
  spec.ranks_per_node = 4;
  spec.experts = 64;
  spec.active = 8;
  spec.groups = spec.active_groups = 4;
  spec.tokens = tokens;
  return spec;
}

struct Case {
  Cluster cluster = make_cluster({.nodes = 4, .per_node = 4});
  Layout layout = make_layout({.ranks = 16, .expert = 16});
  Sites sites{cluster, layout};
  GroupSites group = sites.group(layout.classes[0].group(GroupRole::kExpert).ranks);
  Route route = Route(spec_of(4096));

  Op op(OpKind kind, int held = 0, Algorithm algorithm = Algorithm::kAuto) const {
    Op op;
    op.kind = kind;
    op.units = static_cast<std::int16_t>(held);
    op.algorithm = algorithm;
    op.payload = {7168.0};
    return op;
  }
  Traffic traffic(const Op& op) const { return expert_exchange(op, route, group, cluster); }
  double alone(const Op& op) {
    WireTable table(cluster);
    FlowPaths paths(cluster, 0);
    StepBuilder builder(sites, table, paths, false);
    return builder.build(traffic(op), group).alone;
  }
};

}  // namespace

TEST_CASE("an exchange alone on the network takes what its kernel takes") {
  const int tokens = GENERATE(64, 4096);
  const OpKind kind = GENERATE(OpKind::kDispatch, OpKind::kCombine);
  Case c{.route = Route(spec_of(tokens))};
  const Traffic traffic = c.traffic(c.op(kind));
  REQUIRE(traffic.least_seconds > 0);
  REQUIRE(c.alone(c.op(kind)) == Approx(traffic.latency + traffic.least_seconds).epsilon(0.02));
}

// Copying is what 2 cores do slower than the wires; 8 copy four times as fast.
TEST_CASE("fewer cores copy slower") {
  Case c;
  REQUIRE(c.traffic(c.op(OpKind::kDispatch, 2)).least_seconds >
          2 * c.traffic(c.op(OpKind::kDispatch, 8)).least_seconds);
}

TEST_CASE("few tokens go directly and many once to each node") {
  const Case few{.route = Route(spec_of(128))}, many{.route = Route(spec_of(129))};
  REQUIRE(exchange_family(few.op(OpKind::kDispatch), few.route) == ExchangeFamily::kLowLatency);
  REQUIRE(exchange_family(many.op(OpKind::kDispatch), many.route) == ExchangeFamily::kThroughput);
  const Op direct = many.op(OpKind::kDispatch, 0, Algorithm::kDirect);
  REQUIRE(exchange_family(direct, many.route) == ExchangeFamily::kLowLatency);
}

// 64 tokens of 8 experts from each of 16 ranks: 8,192 rows, less those that stay with their source.
TEST_CASE("for low latency every copy travels by itself") {
  const Case c{.route = Route(spec_of(64))};
  double bytes = 0;
  for (const Edge& edge : c.traffic(c.op(OpKind::kCombine)).edges) bytes += edge.bytes;
  REQUIRE(bytes == Approx(16 * 64 * 8 * 15.0 / 16 * 7168).epsilon(0.05));
}

// 4,096 tokens of 8 experts each, which the ranks take alike: 32,768 rows, whichever nodes they go to.
TEST_CASE("by the library's all-to-all a token travels once for each of its experts") {
  const Case c;
  REQUIRE(all_to_all_rows(c.route) == Approx(4096 * 8).epsilon(0.02));
}

// One NIC a device, two of half the rate each, or one of twice the rate for two devices: NICs of 1 GB/s are
// what the kernel waits for.
TEST_CASE("a device's NICs together send what one of their rate does") {
  Case one{.cluster = make_cluster({.nodes = 4, .per_node = 4, .nic = 1e9})};
  const double alone = one.traffic(one.op(OpKind::kDispatch)).least_seconds;
  for (const auto& [nics, rate] : {std::pair{8, 0.5e9}, std::pair{2, 2e9}}) {
    Pool pool = one.cluster.pools.front();
    pool.node.nics = nics;
    FabricSpec spec = one.cluster.fabric.spec();
    spec.nic = {rate};
    spec.tiers = kAutomaticTiers;
    const Case several{.cluster = {{pool}, Fabric(spec, {part_of_fabric(pool, spec)})}};
    CHECK(several.traffic(several.op(OpKind::kDispatch)).least_seconds == Approx(alone));
  }
  Case slow{.cluster = make_cluster({.nodes = 4, .per_node = 4, .nic = 0.5e9})};
  CHECK(slow.traffic(slow.op(OpKind::kDispatch)).least_seconds == Approx(2 * alone));
}

// 4,096 tokens of 8 experts: 2,048 rows for each of 16 ranks, of which 14 are neither the rank itself nor the
// other die of its package. Links and NICs are far faster than what moves rows over them.
TEST_CASE("between the dies of a package no row crosses a link") {
  Case dies{.cluster = make_cluster({.nodes = 4, .per_node = 4, .link = 1e12, .nic = 1e12})};
  Accelerator& die = dies.cluster.pools.front().accelerator;
  die.id = "ascend-910c-die";
  const ExchangeKernel kernel = exchange_kernel(die, {ExchangeFamily::kThroughput, true, true});
  REQUIRE(kernel.crossing > 0);
  CHECK(dies.traffic(dies.op(OpKind::kCombine)).least_seconds ==
        Approx(14 * 2048 * kernel.crossing).epsilon(0.02));
}
