// One simulated member stands for its class: folded and unfolded runs agree, and so do relabelled ones.
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>

#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

RouteSpec small_route(PopularityKind popularity) {
  return {.seed = 5,
          .popularity = {popularity, 1.1, false},
          .ranks = 16,
          .ranks_per_node = 8,
          .experts = 64,
          .active = 4,
          .groups = 2,
          .active_groups = 2,
          .tokens = 512};
}

// Attention, dispatch, expert GEMM, combine, and the gradients of all ranks beside the last two.
FragmentPtr routed_layer(PopularityKind popularity) {
  const auto exchange = [](OpKind kind) {
    Op op = communication_op(kind, 7168, Algorithm::kAuto, GroupRole::kExpert);
    op.lane = Lane::kExpertComm;
    op.route = 0;
    return op;
  };
  Op expert = compute_op(OpKind::kGroupedGemm);
  expert.route = 0;
  expert.shape.groups = 4;
  const Op reduce = communication_op(OpKind::kAllReduce, 50e6, Algorithm::kRing);
  return make_fragment({{compute_op(OpKind::kAttention)},
                        {exchange(OpKind::kDispatch), {0}},
                        {expert, {1}},
                        {exchange(OpKind::kCombine), {2}},
                        {reduce, {1}},
                        {compute_op(OpKind::kNorm), {3}}},
                       {std::make_shared<const Route>(small_route(popularity))});
}

WorldRun run_layer(PopularityKind popularity, const Layout& layout, const World& world,
                   NetworkDetail detail) {
  const Cluster cluster = make_cluster(world);
  const std::map<OpKind, KindCost> costs = {{OpKind::kAttention, {2e-4, 1e8}},
                                            {OpKind::kGroupedGemm, {1e-7, 1e4, true}},
                                            {OpKind::kNorm, {1e-5, 5e6}}};
  const FragmentPtr layer = routed_layer(popularity);
  std::vector<Submission> twice = on_all_classes(layout, layer);
  for (Submission submission : on_all_classes(layout, layer)) {
    submission.microbatch = 1;
    twice.push_back(submission);
  }
  return simulate({cluster, layout, twice, costs, {detail, Driver::kPlain}});
}

double seconds_of_layer(PopularityKind popularity, bool fold, const World& world, NetworkDetail detail) {
  return run_layer(popularity, make_layout({.ranks = 32, .expert = 16, .fold = fold}), world, detail)
      .seconds();
}

}  // namespace

TEST_CASE("a routed layer takes as long folded as unfolded") {
  for (const NetworkDetail detail : {NetworkDetail::kAlphaBeta, NetworkDetail::kFluid}) {
    const double folded = seconds_of_layer(PopularityKind::kBalanced, true, {.nodes = 4}, detail);
    const double unfolded = seconds_of_layer(PopularityKind::kBalanced, false, {.nodes = 4}, detail);
    REQUIRE(folded == Approx(unfolded).epsilon(5e-3));
  }
}

TEST_CASE("a layer with skewed experts takes as long folded as unfolded") {
  for (const NetworkDetail detail : {NetworkDetail::kAlphaBeta, NetworkDetail::kFluid}) {
    const double folded = seconds_of_layer(PopularityKind::kZipf, true, {.nodes = 4}, detail);
    const double unfolded = seconds_of_layer(PopularityKind::kZipf, false, {.nodes = 4}, detail);
    REQUIRE(folded == Approx(unfolded).epsilon(5e-3));
    REQUIRE(folded > 1.05 * seconds_of_layer(PopularityKind::kBalanced, true, {.nodes = 4}, detail));
  }
}

// Two nodes under each leaf: with rails as columns, the ring between nodes and the exchange climb to the
// spine.
TEST_CASE("a routed layer over oversubscribed leaves takes as long folded as unfolded") {
  const World world{.nodes = 4, .leaf_ports = 1, .oversubscription = 3};
  const double folded = seconds_of_layer(PopularityKind::kBalanced, true, world, NetworkDetail::kFluid);
  const double unfolded = seconds_of_layer(PopularityKind::kBalanced, false, world, NetworkDetail::kFluid);
  const double ample =
      seconds_of_layer(PopularityKind::kBalanced, true, {.nodes = 4, .leaf_ports = 1}, NetworkDetail::kFluid);
  REQUIRE(folded == Approx(unfolded).epsilon(5e-3));
  REQUIRE(folded > ample);
}

// The slowest member of the routed GEMM: all spans of the class end with it, and the average member is ahead.
TEST_CASE("a folded op with member loads tells of the slowest, the first and the average member") {
  const Layout layout = make_layout({.ranks = 32, .expert = 16, .fold = true});
  const WorldRun outcome = run_layer(PopularityKind::kZipf, layout, {.nodes = 4}, NetworkDetail::kFluid);
  const Route route(small_route(PopularityKind::kZipf));
  int busiest = 0;
  double sum = 0, least = 1e9;
  for (int member = 0; member < 16; ++member) {
    if (route.rows_of_rank(member) > route.rows_of_rank(busiest)) busiest = member;
    sum += route.rows_of_rank(member);
    least = std::min<double>(least, route.rows_of_rank(member));
  }
  const Span& span = outcome.span(0, 2);
  const double duration = (span.end - span.start).seconds();
  REQUIRE(span.slowest == busiest);
  REQUIRE((span.mean_end - span.start).seconds() / duration ==
          Approx(sum / 16 / route.rows_of_rank(busiest)).epsilon(1e-4));
  REQUIRE((span.first_end - span.start).seconds() / duration ==
          Approx(least / route.rows_of_rank(busiest)).epsilon(1e-4));
  // At the combine the average member is ready so much earlier than the transfer can begin.
  const Span& combine = outcome.span(0, 3);
  REQUIRE(combine.work_start == span.end);
  REQUIRE(std::abs((combine.start - span.mean_end).ns) <= 1);
}

// The same ranks with the devices of two nodes exchanged: everything is symmetric, so nothing changes.
TEST_CASE("relabelling symmetric ranks changes nothing") {
  const Layout layout = make_layout({.ranks = 32, .expert = 16});
  Layout relabelled = layout;
  for (int rank = 0; rank < 16; ++rank) relabelled.device_of_rank[rank] = (rank + 8) % 16;
  const WorldRun a = run_layer(PopularityKind::kBalanced, layout, {.nodes = 4}, NetworkDetail::kFluid);
  const WorldRun b = run_layer(PopularityKind::kBalanced, relabelled, {.nodes = 4}, NetworkDetail::kFluid);
  REQUIRE(a.end == b.end);
  REQUIRE(a.spans.size() == b.spans.size());
  for (std::size_t i = 0; i < a.spans.size(); ++i) {
    REQUIRE(a.spans[i].start == b.spans[i].start);
    REQUIRE(a.spans[i].end == b.spans[i].end);
  }
}

// Twelve nodes of eight and one of four: the ranks of a class are not alike, and the busiest decides.
TEST_CASE("an all-gather takes as long folded as unfolded where the last node is half used") {
  const Cluster cluster = make_cluster({.nodes = 13});
  const FragmentPtr gather =
      make_fragment({{communication_op(OpKind::kAllGather, 1 << 20, Algorithm::kDirect)}});
  const auto seconds = [&](bool fold) {
    const Layout layout = make_layout({.ranks = 100, .fold = fold});
    return simulate({cluster, layout, on_all_classes(layout, gather)}).seconds();
  };
  REQUIRE(seconds(true) == Approx(seconds(false)).epsilon(1e-6));
}
