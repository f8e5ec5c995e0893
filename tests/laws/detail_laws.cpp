// The two drivers and the three levels of network detail against each other. SimGrid allows one engine in a
// process, so that a test uses it once.
#include <catch2/catch.hpp>

#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

// Three stages of 8 ranks, 6 microbatches forward: kernels of uneven lengths that share memory, messages, an
// all-reduce.
std::vector<Submission> pipeline(const Layout& layout) {
  std::vector<FragmentPtr> stages;
  for (int stage = 0; stage < 3; ++stage) {
    std::vector<OpWith> ops;
    if (stage > 0)
      ops.push_back({communication_op(OpKind::kRecv, 3e6, Algorithm::kAuto, GroupRole::kPrevious)});
    const auto first = static_cast<std::int32_t>(ops.size());
    ops.push_back({compute_op(OpKind::kGemm, 60),
                   first > 0 ? std::vector<std::int32_t>{0} : std::vector<std::int32_t>{}});
    Op side = compute_op(OpKind::kNorm, 40);
    side.lane = Lane::kHostCopy;
    ops.push_back({side});
    if (stage < 2)
      ops.push_back({communication_op(OpKind::kSend, 3e6, Algorithm::kAuto, GroupRole::kNext), {first}});
    ops.push_back({communication_op(OpKind::kAllReduce, 1e6 / 3), {first + 1}});
    stages.push_back(make_fragment(ops));
  }
  std::vector<Submission> submissions;
  for (int microbatch = 0; microbatch < 6; ++microbatch) {
    for (std::size_t i = 0; i < layout.classes.size(); ++i) {
      const int stage = layout.classes[i].representative() / 8;
      submissions.push_back({.fragment = stages[stage],
                             .rank_class = static_cast<std::int32_t>(i),
                             .microbatch = microbatch,
                             .after = {}});
    }
  }
  return submissions;
}

WorldRun run_pipeline(SimOptions options, bool fold) {
  const Cluster cluster = make_cluster({.nodes = 3});
  const Layout layout = make_layout({.ranks = 24, .stage = 8, .fold = fold});
  return simulate({cluster,
                   layout,
                   pipeline(layout),
                   {{OpKind::kGemm, {33.3e-6, 4e7}}, {OpKind::kNorm, {17.1e-6, 3e7}}},
                   options});
}

bool same(const Span& a, const Span& b) {
  return a.sequence == b.sequence && a.op == b.op && a.rank_class == b.rank_class && a.start == b.start &&
         a.end == b.end && a.first_end == b.first_end && a.mean_end == b.mean_end &&
         a.work_start == b.work_start && a.slowest == b.slowest;
}

void require_same_timeline(bool fold, NetworkDetail detail) {
  const WorldRun plain = run_pipeline({detail, Driver::kPlain}, fold);
  const WorldRun simgrid = run_pipeline({detail, Driver::kSimGrid}, fold);
  REQUIRE(plain.end == simgrid.end);
  REQUIRE(plain.spans.size() == simgrid.spans.size());
  for (std::size_t i = 0; i < plain.spans.size(); ++i) REQUIRE(same(plain.spans[i], simgrid.spans[i]));
}

// Rank r sends to rank r + `stage`; only the ranks of the first half send.
WorldRun send_to_next(const World& world, int ranks, int stage, double bytes, SimOptions options) {
  const Cluster cluster = make_cluster(world);
  const Layout layout = make_layout({.ranks = ranks, .stage = stage});
  const FragmentPtr send =
      make_fragment({{communication_op(OpKind::kSend, bytes, Algorithm::kAuto, GroupRole::kNext)}});
  const FragmentPtr receive =
      make_fragment({{communication_op(OpKind::kRecv, bytes, Algorithm::kAuto, GroupRole::kPrevious)}});
  std::vector<Submission> submissions;
  for (int rank = 0; rank < ranks; ++rank) {
    submissions.push_back({.fragment = rank < stage ? send : receive, .rank_class = rank, .after = {}});
  }
  return simulate({cluster, layout, submissions, {}, options});
}

constexpr SimOptions kFluidPlain{NetworkDetail::kFluid, Driver::kPlain};
constexpr SimOptions kNativeSimGrid{NetworkDetail::kNative, Driver::kSimGrid};

}  // namespace

// Leaves a test case, with the reason, where SimGrid is not there.
#define NEEDS_SIMGRID()                         \
  if (!has_simgrid()) {                         \
    WARN("skipped: this build has no SimGrid"); \
    return;                                     \
  }                                             \
  static_cast<void>(0)

TEST_CASE("SimGrid and the plain loop give the same timeline, folded") {
  NEEDS_SIMGRID();
  require_same_timeline(true, NetworkDetail::kFluid);
}

TEST_CASE("SimGrid and the plain loop give the same timeline, unfolded") {
  NEEDS_SIMGRID();
  require_same_timeline(false, NetworkDetail::kFluid);
}

TEST_CASE("SimGrid and the plain loop give the same timeline without sharing") {
  NEEDS_SIMGRID();
  require_same_timeline(false, NetworkDetail::kAlphaBeta);
}

TEST_CASE("the same run twice gives the same timeline") {
  const WorldRun first = run_pipeline(kFluidPlain, false), second = run_pipeline(kFluidPlain, false);
  REQUIRE(first.spans.size() == second.spans.size());
  for (std::size_t i = 0; i < first.spans.size(); ++i) REQUIRE(same(first.spans[i], second.spans[i]));
}

// Kernels and messages interleave, and control comes back to the caller at each of 144 completions while
// messages fly.
TEST_CASE("fluid and native agree within 1% on a pipeline") {
  NEEDS_SIMGRID();
  const double fluid = run_pipeline(kFluidPlain, false).seconds();
  REQUIRE(run_pipeline(kNativeSimGrid, false).seconds() == Approx(fluid).epsilon(0.01));
}

// One device a node, each rank of the lower half sends to its own partner: no wire is shared.
TEST_CASE("fluid and native agree within 1% on messages that share nothing") {
  NEEDS_SIMGRID();
  const World world{.nodes = 8, .per_node = 1};
  const double fluid = send_to_next(world, 8, 4, 100e6, kFluidPlain).seconds();
  REQUIRE(send_to_next(world, 8, 4, 100e6, kNativeSimGrid).seconds() == Approx(fluid).epsilon(0.01));
}

// Four senders under one leaf, four receivers under another, an uplink of a quarter of what they could send:
// equal paths, so that both levels give each sender a quarter of the uplink. T = 4 * 100 MB / 50e9 + 2 us + 3
// * 0.5 us.
TEST_CASE("fluid and native agree within 1% where equal paths share a wire") {
  NEEDS_SIMGRID();
  const World world{.nodes = 8, .per_node = 1, .leaf_ports = 4, .oversubscription = 4};
  const double expected = 4 * 100e6 / 50e9 + 3.5e-6;
  REQUIRE(send_to_next(world, 8, 4, 100e6, kFluidPlain).seconds() == Approx(expected).epsilon(1e-4));
  REQUIRE(send_to_next(world, 8, 4, 100e6, kNativeSimGrid).seconds() == Approx(expected).epsilon(0.01));
}

// 4,032 messages at once under two leaves. SimGrid sums each wire's claims, 1 / latency of every message, and
// takes them off again one by one: what rounding leaves of 63 claims of some 4e5 must count as nothing.
TEST_CASE("the native network carries a direct exchange of 64 ranks") {
  NEEDS_SIMGRID();
  const Cluster cluster = make_cluster(
      {.nodes = 64, .per_node = 1, .host_latency = Time{2'350}, .hop_latency = Time{450}, .leaf_ports = 32});
  const Layout layout = make_layout({.ranks = 64});
  const FragmentPtr exchange =
      make_fragment({{communication_op(OpKind::kAllToAll, 64e6, Algorithm::kDirect)}});
  const auto submissions = on_all_classes(layout, exchange);
  const double fluid = simulate({cluster, layout, submissions, {}, kFluidPlain}).seconds();
  // Every rank sends 63 MB over 50e9 B/s, 1.26 ms.
  CHECK(fluid == Approx(1.26e-3).epsilon(0.01));
  CHECK(simulate({cluster, layout, submissions, {}, kNativeSimGrid}).seconds() ==
        Approx(fluid).epsilon(0.01));
}

// Where the two differ by design. SimGrid's CM02 model weighs a flow by the latency of its path, as TCP does:
// of two flows on a full wire, rate times latency is the same. Switched fabrics with hardware transport share
// a port packet by packet, whatever the distance, so that fluid gives each half. Ranks 0 and 1 send 100 MB
// each to rank 2; rank 1 is under the receiver's leaf (2 us + 1 switch: 12 us with a slow switch of 10 us),
// rank 0 under another (2 us + 3 switches: 32 us). Fluid: 25e9 B/s each, both end at 4 ms. Native: rates 12
// to 32; the near flow has 50e9 * 32 / 44 = 36.4e9 B/s and ends at 2.75 ms, 31% early; the far one, with the
// whole wire from then on, at 4 ms: the wire is full all the time, the sum of the bytes is the same.
TEST_CASE("native favours short paths on a shared wire, fluid does not") {
  NEEDS_SIMGRID();
  const Cluster cluster =
      make_cluster({.nodes = 4, .per_node = 1, .hop_latency = Time{10'000}, .leaf_ports = 2});
  Layout layout = make_layout({.ranks = 3});
  layout.device_of_rank = {0, 2, 3};  // leaves: devices 0 and 1, 2 and 3
  const auto pair = [&](int of, GroupRole role, std::vector<std::int32_t> ranks, int index) {
    layout.classes[of].groups[static_cast<int>(role)] = {
        .ranks = std::move(ranks), .my_index = index, .num_classes = 2};
  };
  pair(0, GroupRole::kNext, {0, 2}, 0);
  pair(1, GroupRole::kNext, {1, 2}, 0);
  const FragmentPtr send =
      make_fragment({{communication_op(OpKind::kSend, 100e6, Algorithm::kAuto, GroupRole::kNext)}});
  const std::vector<Submission> sends = {{.fragment = send, .rank_class = 0, .after = {}},
                                         {.fragment = send, .rank_class = 1, .after = {}}};
  const WorldRun fluid = simulate({cluster, layout, sends, {}, kFluidPlain});
  const WorldRun native = simulate({cluster, layout, sends, {}, kNativeSimGrid});
  REQUIRE(fluid.span(1).end.seconds() == Approx(4e-3).epsilon(0.01));
  REQUIRE(native.span(1).end.seconds() == Approx(2.75e-3).epsilon(0.01));
  REQUIRE(native.seconds() == Approx(fluid.seconds()).epsilon(0.01));
}

TEST_CASE("the native network refuses more messages than it can carry, in one sentence") {
  NEEDS_SIMGRID();
  const Cluster cluster = make_cluster({.nodes = 9});
  const Layout layout = make_layout({.ranks = 72, .fold = true});
  const FragmentPtr exchange =
      make_fragment({{communication_op(OpKind::kAllToAll, 1e6, Algorithm::kDirect)}});
  REQUIRE_THROWS_WITH(
      simulate({cluster, layout, on_all_classes(layout, exchange), {}, kNativeSimGrid}),
      "the native network carries at most 4096 messages at a time, this run needs 5112 at 0 ns: use fluid");
}

TEST_CASE("the native network needs SimGrid's driver") {
  const Cluster cluster = make_cluster({});
  const Layout layout = make_layout({.ranks = 2});
  REQUIRE_THROWS_WITH(simulate({cluster, layout, {}, {}, {NetworkDetail::kNative, Driver::kPlain}}),
                      "the native network is SimGrid's own: it needs the SimGrid driver");
}
