// Low-latency dispatch and combine: between nodes their cores post messages and are free while the NIC works;
// within a node the cores copy to the end.
#include <catch2/catch.hpp>

#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

constexpr int kPostingRanks = 16, kPostedTokens = 128, kGemm = 1;
constexpr double kPostedRow = 7168, kGemmSeconds = 50e-6;

// Every token goes to eight experts, one to four on a rank.
RoutePtr route_over(int ranks_per_node) {
  RouteSpec spec;
  spec.ranks = kPostingRanks;
  spec.ranks_per_node = ranks_per_node;
  spec.experts = 64;
  spec.active = 8;
  spec.tokens = kPostedTokens;
  return std::make_shared<const Route>(spec);
}

Op dispatch(Algorithm algorithm, int cores) {
  Op op = communication_op(OpKind::kDispatch, kPostedRow, algorithm, GroupRole::kExpert);
  op.lane = Lane::kExpertComm;
  op.route = 0;
  op.units = static_cast<std::int16_t>(cores);
  return op;
}

struct Beside {
  double exchange = 0, waited = 0;  // s: how long dispatch takes, when the product beside it begins
};

// A dispatch and a product that want to begin at once, the dispatch first.
Beside run(World world, Algorithm algorithm = Algorithm::kDirect, int cores = 0) {
  const Cluster cluster = make_cluster(world);
  const Layout layout = make_layout({.ranks = kPostingRanks, .expert = kPostingRanks, .fold = true});
  const Op gemm = compute_op(OpKind::kGemm, -cores);
  const FragmentPtr fragment =
      make_fragment({{dispatch(algorithm, cores)}, {gemm}}, {route_over(world.per_node)});
  const WorldRun ran =
      simulate({cluster, layout, on_all_classes(layout, fragment), {{OpKind::kGemm, {kGemmSeconds}}}, {}});
  return {(ran.span(0, 0).end - ran.span(0, 0).start).seconds(), ran.span(0, kGemm).start.seconds()};
}

constexpr World kNodes{.nodes = 4, .per_node = 4}, kOneNode{.nodes = 1, .per_node = kPostingRanks};

}  // namespace

// Of 128 x 8 rows three quarters cross the NIC: 5.5 MB, 0.11 ms at 50 GB/s, in which the product computes.
TEST_CASE("between nodes a product waits for the posting of messages, not for the NIC") {
  const Beside beside = run(kNodes);
  CHECK(beside.exchange > 110e-6);
  CHECK(beside.waited > 0);
  CHECK(beside.waited < 0.5 * beside.exchange);
}

TEST_CASE("a slower NIC keeps the tokens longer and the cores as long") {
  World slow = kNodes;
  slow.nic /= 4;
  const Beside fast = run(kNodes), beside = run(slow);
  CHECK(beside.exchange > 3 * fast.exchange);
  CHECK(beside.waited == Approx(fast.waited).epsilon(1e-9));
}

TEST_CASE("within a node the cores copy until the exchange ends") {
  const Beside beside = run(kOneNode);
  CHECK(beside.waited == Approx(beside.exchange).epsilon(1e-4));
}

// A Kunlun's or an Ascend's matrix cores are others than those that send.
TEST_CASE("a chip whose engines are independent computes while others of its cores post") {
  World apart = kNodes;
  apart.independent_engines = true;
  apart.general_cores = 50;
  CHECK(run(apart).waited == 0);
}

TEST_CASE("a kernel for high throughput holds the cores that it was given, and no others") {
  CHECK(run(kNodes, Algorithm::kHierarchical, 24).waited == 0);
}
