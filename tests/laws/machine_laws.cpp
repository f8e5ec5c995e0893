// What holds on every machine: order, resources, and that nothing is faster than its parts.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>

#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

constexpr Time kMicrosecond{1'000};

Op on_lane(Op op, Lane lane) {
  op.lane = lane;
  return op;
}

Op with_units(Op op, int units) {
  op.units = static_cast<std::int16_t>(units);
  return op;
}

WorldRun run_on_one(const World& world, const FragmentPtr& fragment, std::map<OpKind, KindCost> costs) {
  const Cluster cluster = make_cluster(world);
  const Layout layout = make_layout({.ranks = 8, .fold = true});
  return simulate({cluster, layout, on_all_classes(layout, fragment), std::move(costs), {}});
}

// A GEMM of 1 ms on all cores, beside an all-reduce that holds 20 cores for as long as it takes.
WorldRun gemm_beside_all_reduce(const World& world) {
  const Op reduce = with_units(communication_op(OpKind::kAllReduce, 800e6), 20);
  return run_on_one(world, make_fragment({{reduce}, {compute_op(OpKind::kGemm)}}), {{OpKind::kGemm, {1e-3}}});
}

}  // namespace

// A diamond a -> (b, c) -> d on two lanes: 10 + max(20, 35) + 5 us.
TEST_CASE("the makespan is the longest path where resources do not bind") {
  const std::map<OpKind, KindCost> costs = {{OpKind::kNorm, {10e-6}},
                                            {OpKind::kAdd, {20e-6}},
                                            {OpKind::kSplit, {35e-6}},
                                            {OpKind::kConcat, {5e-6}}};
  const auto part = [](OpKind kind, Lane lane) {
    Op op = on_lane(compute_op(kind, 50), lane);
    return op;
  };
  // 50 of 100 cores: twice the time at all cores.
  const FragmentPtr fragment = make_fragment({{part(OpKind::kNorm, Lane::kCompute)},
                                              {part(OpKind::kAdd, Lane::kCompute), {0}},
                                              {part(OpKind::kSplit, Lane::kHostCopy), {0}},
                                              {part(OpKind::kConcat, Lane::kCompute), {1, 2}}});
  REQUIRE(run_on_one({}, fragment, costs).end == kMicrosecond * 100);
}

// Lanes, dependencies and cores only add waiting: for every op of a random graph, its span is at least its
// cost, it starts after its dependencies and its lane predecessor have ended, and the makespan is at least
// the longest path.
TEST_CASE("no op beats its cost or its dependencies, and the makespan is never below the critical path") {
  std::vector<OpWith> ops;
  std::vector<double> path;
  const std::array<OpKind, 3> kinds = {OpKind::kGemm, OpKind::kNorm, OpKind::kAdd};
  const std::array<double, 3> seconds = {30e-6, 7e-6, 11e-6};
  for (int i = 0; i < 200; ++i) {
    const int kind = i * 7 % 3, cores = 20 + i * 13 % 60;
    OpWith with{on_lane(compute_op(kinds[kind], cores), i % 2 ? Lane::kHostCopy : Lane::kCompute)};
    double before = 0;
    for (const int back : {1 + i * 5 % 9, 3 + i % 4}) {
      if (i < back) continue;
      with.after.push_back(i - back);
      before = std::max(before, path[i - back]);
    }
    path.push_back(before + seconds[kind] * 100 / cores);
    ops.push_back(with);
  }
  const WorldRun outcome = run_on_one(
      {}, make_fragment(ops),
      {{OpKind::kGemm, {seconds[0], 1e7}}, {OpKind::kNorm, {seconds[1], 7e6}}, {OpKind::kAdd, {seconds[2]}}});
  REQUIRE(outcome.spans.size() == 200);
  REQUIRE(outcome.seconds() >= *std::max_element(path.begin(), path.end()));
  for (int i = 0; i < 200; ++i) {
    const Span& span = outcome.span(0, i);
    const double cost = seconds[i * 7 % 3] * 100 / (20 + i * 13 % 60);
    REQUIRE((span.end - span.start).seconds() >= cost * (1 - 1e-9));
    for (const int before : ops[i].after) REQUIRE(span.start >= outcome.span(0, before).end);
    if (i >= 2) REQUIRE(span.start >= outcome.span(0, i - 2).end);
  }
}

// At any start of an op, the cores of all ops that run then add up to at most those of the chip.
TEST_CASE("cores held never exceed those of the chip") {
  std::vector<OpWith> ops;
  for (int i = 0; i < 60; ++i) {
    const Lane lane = static_cast<Lane>(i % kNumLanes);
    ops.push_back({on_lane(compute_op(OpKind::kGemm, 10 + i * 17 % 80), lane)});
  }
  const WorldRun outcome = run_on_one({}, make_fragment(ops), {{OpKind::kGemm, {1e-5}}});
  bool shared = false;
  for (const Span& at : outcome.spans) {
    int held = 0;
    for (const Span& span : outcome.spans) {
      if (span.start <= at.start && at.start < span.end) held += 10 + span.op * 17 % 80;
    }
    REQUIRE(held <= 100);
    shared |= held > 90;
  }
  REQUIRE(shared);
}

// With 80 of 100 cores the GEMM takes 1 ms * 100 / 80.
TEST_CASE("a GEMM beside communication is slower on a GPU") {
  const Span span = gemm_beside_all_reduce({}).span(0, 1);
  REQUIRE((span.end - span.start).seconds() == Approx(1.25e-3));
}

TEST_CASE("a GEMM beside communication keeps its time where engines are independent") {
  const Span span = gemm_beside_all_reduce({.general_cores = 32, .independent_engines = true}).span(0, 1);
  REQUIRE((span.end - span.start).seconds() == Approx(1e-3));
}

// Each asks for 0.8 of the memory rate: together 1.6, so both take 1.6 times as long.
TEST_CASE("two memory-bound kernels share the memory rate") {
  const Op left = compute_op(OpKind::kNorm, 50),
           right = on_lane(compute_op(OpKind::kNorm, 50), Lane::kHostCopy);
  // 10 us at all cores, 20 us at half of them; 0.8 * 1e12 B/s * 20 us.
  const WorldRun outcome = run_on_one({}, make_fragment({{left}, {right}}), {{OpKind::kNorm, {10e-6, 16e6}}});
  REQUIRE(outcome.seconds() == Approx(32e-6));
}

// Two ranks send 100 MB each to the same receiver: its NIC gives each half, so both take twice 2 ms.
TEST_CASE("two messages into one NIC take twice as long") {
  const Cluster cluster = make_cluster({.nodes = 3, .per_node = 1});
  Layout layout = make_layout({.ranks = 3});
  const auto pair = [&](int of, GroupRole role, std::vector<std::int32_t> ranks, int index) {
    layout.classes[of].groups[static_cast<int>(role)] = {
        .ranks = std::move(ranks), .my_index = index, .num_classes = 2};
  };
  pair(0, GroupRole::kNext, {0, 2}, 0);
  pair(1, GroupRole::kNext, {1, 2}, 0);
  pair(2, GroupRole::kPrevious, {0, 2}, 1);
  pair(2, GroupRole::kTied, {1, 2}, 1);
  const FragmentPtr send =
      make_fragment({{communication_op(OpKind::kSend, 100e6, Algorithm::kAuto, GroupRole::kNext)}});
  const Op from_first = communication_op(OpKind::kRecv, 100e6, Algorithm::kAuto, GroupRole::kPrevious);
  const Op from_second = on_lane(communication_op(OpKind::kRecv, 100e6, Algorithm::kAuto, GroupRole::kTied),
                                 Lane::kRecvBackward);
  const FragmentPtr receive = make_fragment({{from_first}, {from_second}});
  const WorldRun outcome = simulate({cluster,
                                     layout,
                                     {{.fragment = send, .rank_class = 0, .after = {}},
                                      {.fragment = send, .rank_class = 1, .after = {}},
                                      {.fragment = receive, .rank_class = 2, .after = {}}}});
  REQUIRE(outcome.seconds() == Approx(4e-3 + 2.5e-6));
}

TEST_CASE("a submission starts after those that it names, and no sooner") {
  const Cluster cluster = make_cluster({});
  const Layout layout = make_layout({.ranks = 2});
  const FragmentPtr one = make_fragment({{compute_op(OpKind::kGemm)}});
  const WorldRun outcome = simulate(
      {cluster,
       layout,
       {{.fragment = one, .rank_class = 0, .after = {}}, {.fragment = one, .rank_class = 1, .after = {0}}},
       {{OpKind::kGemm, {1e-3}}}});
  REQUIRE(outcome.span(1).start == outcome.span(0).end);
}

// The sender is ready at once and done when its bytes have left; the receiver is busy for 5 ms and finds the
// message there.
TEST_CASE("a message is under way before its receiver is ready") {
  const Cluster cluster = make_cluster({.nodes = 2, .per_node = 1});
  const Layout layout = make_layout({.ranks = 2, .stage = 1});
  const FragmentPtr send =
      make_fragment({{communication_op(OpKind::kSend, 50e6, Algorithm::kAuto, GroupRole::kNext)}});
  const FragmentPtr receive =
      make_fragment({{compute_op(OpKind::kGemm)},
                     {communication_op(OpKind::kRecv, 50e6, Algorithm::kAuto, GroupRole::kPrevious), {0}}});
  const WorldRun outcome = simulate({cluster,
                                     layout,
                                     {{.fragment = send, .rank_class = 0, .after = {}},
                                      {.fragment = receive, .rank_class = 1, .after = {}}},
                                     {{OpKind::kGemm, {5e-3}}}});
  REQUIRE(outcome.span(0).end.seconds() == Approx(1e-3 + 2.5e-6));
  REQUIRE(outcome.span(1, 1).start == outcome.span(1, 1).end);
}

// Rank 1 comes 1 ms later than the others; they wait for it, and all end together.
TEST_CASE("a collective begins when the last member has come") {
  const Cluster cluster = make_cluster({});
  const Layout layout = make_layout({.ranks = 8});
  const FragmentPtr early = make_fragment({{communication_op(OpKind::kAllReduce, 8e6)}});
  const FragmentPtr late =
      make_fragment({{communication_op(OpKind::kAllReduce, 8e6)}, {compute_op(OpKind::kGemm)}});
  Op reduce = communication_op(OpKind::kAllReduce, 8e6);
  const FragmentPtr after_gemm = make_fragment({{compute_op(OpKind::kGemm)}, {reduce, {0}}});
  std::vector<Submission> submissions = on_all_classes(layout, early);
  submissions[1].fragment = after_gemm;
  const WorldRun outcome = simulate({cluster, layout, submissions, {{OpKind::kGemm, {1e-3}}}});
  const Span& waiting = outcome.span(0);
  REQUIRE(waiting.start == Time{0});
  REQUIRE(waiting.work_start == Time{1'000'000});
  REQUIRE(waiting.end == outcome.span(1, 1).end);
  REQUIRE((waiting.end - waiting.work_start).seconds() == Approx(2 * 7.0 / 8 * 8e6 / 100e9 + 14e-6));
}

TEST_CASE("a deadlock names the ops that wait") {
  const Cluster cluster = make_cluster({});
  const Layout layout = make_layout({.ranks = 2});
  const FragmentPtr reduce = make_fragment({{communication_op(OpKind::kAllReduce, 1e6)}});
  REQUIRE_THROWS_WITH(simulate({cluster, layout, {{.fragment = reduce, .rank_class = 0, .after = {}}}}),
                      "deadlock at 0 ns: op 0 (all_reduce) of \"test\", submission 0, class 0, waits for its "
                      "peers or for cores");
}

TEST_CASE("an op that wants more cores than the chip has is an error, not a deadlock") {
  REQUIRE_THROWS_WITH(
      run_on_one({}, make_fragment({{compute_op(OpKind::kGemm, 101)}}), {{OpKind::kGemm, {1e-3}}}),
      "op 0 (gemm) of \"test\" holds 101 cores, but test-chip has 100");
}
