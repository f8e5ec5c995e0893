// Dispatch and combine take on an idle network what the model of their kernels says.
#include "sim/traffic/expert_exchange.h"

#include <catch2/catch.hpp>

#include "sim/traffic/step_builder.h"
#include "tests/laws/small_world.h"

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
