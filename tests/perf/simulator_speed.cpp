// How fast the simulator goes. Nothing is asserted but that the work was done: figures are printed, one line
// each.
#include <catch2/catch.hpp>

#include <cstdio>

#include "tests/laws/small_world.h"
#include "tests/perf/process_use.h"

using namespace moebius;

namespace {

// A pipeline stage's microbatch: receive, 40 kernels with two exchanges among them, send.
FragmentPtr stage_fragment(bool is_first, bool is_last, const RoutePtr& route) {
  std::vector<OpWith> ops;
  const auto last = [&] {
    return ops.empty() ? std::vector<std::int32_t>{} : std::vector{static_cast<std::int32_t>(ops.size()) - 1};
  };
  if (!is_first)
    ops.push_back({communication_op(OpKind::kRecv, 1e6, Algorithm::kAuto, GroupRole::kPrevious)});
  for (int kernel = 0; kernel < 40; ++kernel) {
    if (kernel % 20 == 10) {
      Op exchange = communication_op(OpKind::kDispatch, 7168, Algorithm::kAuto, GroupRole::kExpert);
      exchange.route = 0;
      exchange.lane = Lane::kExpertComm;
      ops.push_back({exchange, last()});
    }
    ops.push_back({compute_op(kernel % 3 == 0 ? OpKind::kNorm : OpKind::kGemm), last()});
  }
  if (!is_last)
    ops.push_back({communication_op(OpKind::kSend, 1e6, Algorithm::kAuto, GroupRole::kNext), last()});
  return make_fragment(std::move(ops), {route});
}

struct Speed {
  std::int64_t ops = 0;
  double cpu = 0;
  Time end;
};

// `microbatches` through 16 stages of 128 ranks, a few of them under way at a time.
Speed run_pipeline(int microbatches, SimOptions options) {
  const Cluster cluster = make_cluster({.nodes = 256});
  const Layout layout = make_layout({.ranks = 2048, .expert = 64, .stage = 128, .fold = true});
  RouteSpec spec;
  spec.ranks = 64;
  spec.ranks_per_node = 8;
  spec.experts = 256;
  spec.active = 8;
  spec.groups = 8;
  spec.active_groups = 4;
  spec.tokens = 4096;
  const auto route = std::make_shared<const Route>(spec);
  const int stages = static_cast<int>(layout.classes.size());
  std::vector<FragmentPtr> fragments;
  for (int stage = 0; stage < stages; ++stage)
    fragments.push_back(stage_fragment(stage == 0, stage == stages - 1, route));
  const FixedCost cost({{OpKind::kGemm, {1e-4, 1e7}}, {OpKind::kNorm, {1e-5, 5e6}}}, 100);
  Recorder recorder(layout, {Detail::kNone});

  const double start = cpu_seconds();
  const auto executor = make_sim_executor(cluster, layout, {&cost}, recorder, options);
  Speed speed;
  std::int32_t sequence = 0;
  std::int64_t completed = 0;
  while (completed < static_cast<std::int64_t>(microbatches) * stages) {
    while (sequence < microbatches * stages && sequence - completed < 4 * stages) {
      Submission submission{.fragment = fragments[sequence % stages],
                            .sequence = sequence,
                            .rank_class = sequence % stages,
                            .microbatch = sequence / stages,
                            .after = {}};
      speed.ops += static_cast<std::int64_t>(submission.fragment->ops.size());
      recorder.submitted(submission);
      executor->submit(submission);
      ++sequence;
    }
    completed += static_cast<std::int64_t>(executor->wait(kForever).size());
  }
  speed.end = executor->finish();
  speed.cpu = cpu_seconds() - start;
  return speed;
}

void print(const char* what, const Speed& speed) {
  std::printf("%-44s %9lld ops  %7.3f s CPU  %7.0f ns/op  %6.1f MB  end %s\n", what,
              static_cast<long long>(speed.ops), speed.cpu, speed.cpu * 1e9 / static_cast<double>(speed.ops),
              resident_megabytes(), to_text(speed.end).c_str());
}

Speed run_collective(OpKind kind, double bytes, int ranks, Algorithm algorithm) {
  const double start = cpu_seconds();
  const Cluster cluster = make_cluster({.nodes = ranks / 8});
  const Layout layout = make_layout({.ranks = ranks, .fold = true});
  const WorldRun outcome =
      simulate({cluster,
                layout,
                on_all_classes(layout, make_fragment({{communication_op(kind, bytes, algorithm)}})),
                {},
                {}});
  return {1, cpu_seconds() - start, outcome.end};
}

}  // namespace

TEST_CASE("half a million ops stream through 16 classes") {
  for (const int microbatches : {100, 750, 1500}) {
    const Speed speed = run_pipeline(microbatches, {NetworkDetail::kFluid, Driver::kPlain});
    print("16 classes, fluid, plain loop", speed);
    REQUIRE(speed.ops > 0);
  }
  print("16 classes, alpha-beta, plain loop", run_pipeline(750, {NetworkDetail::kAlphaBeta, Driver::kPlain}));
}

TEST_CASE("half a million ops under SimGrid's clock") {
  if (!has_simgrid()) {
    WARN("skipped: this build has no SimGrid");
    return;
  }
  print("16 classes, fluid, SimGrid", run_pipeline(750, {NetworkDetail::kFluid, Driver::kSimGrid}));
}

TEST_CASE("large collectives") {
  print("ring all-reduce, 1,024 ranks", run_collective(OpKind::kAllReduce, 1e9, 1024, Algorithm::kRing));
  print("automatic all-reduce, 1,024 ranks", run_collective(OpKind::kAllReduce, 1e9, 1024, Algorithm::kAuto));
  print("direct all-to-all, 256 ranks", run_collective(OpKind::kAllToAll, 1e8, 256, Algorithm::kDirect));
}
