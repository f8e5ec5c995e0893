// Machines of virtual ranks: what shares a chip queues for it, and exchange costs what was measured.
#include <catch2/catch.hpp>

#include "small_world.h"

using namespace moebius;

namespace {

constexpr int kCores = 100;

// Exchange: 2 us, then a byte a nanosecond.
Cluster virtual_cluster(int devices) {
  World world;
  world.per_node = devices;
  world.cores = kCores;
  Cluster cluster = make_cluster(world);
  cluster.exchange = LocalExchange{.wire = {{1e9}, Time{2'000}}};
  return cluster;
}

Layout ranks_on_one_device(int ranks) {
  Layout layout = make_layout({.ranks = ranks, .expert = ranks});
  layout.device_of_rank.assign(ranks, 0);
  return layout;
}

WorldRun run(const Cluster& cluster, const Layout& layout, const FragmentPtr& fragment) {
  return simulate({.cluster = cluster,
                   .layout = layout,
                   .submissions = on_all_classes(layout, fragment),
                   .costs = {{OpKind::kGemm, {.seconds = 10e-6}}}});
}

}  // namespace

TEST_CASE("two ranks on one chip compute one after the other, whatever cores they ask for") {
  const Cluster cluster = virtual_cluster(1);
  for (const int units : {0, 20, -20}) {
    const FragmentPtr gemm = make_fragment({{compute_op(OpKind::kGemm, units)}});
    const WorldRun outcome = run(cluster, ranks_on_one_device(2), gemm);
    CHECK(outcome.end == Time{20'000});
    CHECK(outcome.span(1).start == Time{10'000});
  }
}

TEST_CASE("ranks with a core each compute side by side") {
  const Cluster cluster = virtual_cluster(2);
  const Layout layout = make_layout({.ranks = 2, .expert = 2});
  CHECK(run(cluster, layout, make_fragment({{compute_op(OpKind::kGemm)}})).end == Time{10'000});
}

TEST_CASE("a collective of virtual ranks takes its rounds' latencies and what each member copies") {
  // Four ranks, 8000 bytes: each copies all of it in a round. On cores of their own 2 + 8 us; on one chip the
  // four share the wire: 2 + 32 us. An all-reduce is two rounds.
  const Layout apart = make_layout({.ranks = 4, .expert = 4}), together = ranks_on_one_device(4);
  const Cluster cores = virtual_cluster(4), chip = virtual_cluster(1);
  for (const OpKind kind :
       {OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kAllToAll, OpKind::kBroadcast}) {
    const FragmentPtr op = make_fragment({{communication_op(kind, 8000, Algorithm::kAuto)}});
    CHECK(run(cores, apart, op).end == Time{10'000});
    CHECK(run(chip, together, op).end == Time{34'000});
  }
  const FragmentPtr reduce = make_fragment({{communication_op(OpKind::kAllReduce, 8000, Algorithm::kAuto)}});
  CHECK(run(cores, apart, reduce).end == Time{20'000});
  CHECK(run(chip, together, reduce).end == Time{68'000});
}

TEST_CASE("an exchange that was measured by its kind takes that kind's rate and latency") {
  // All-reduce in BF16: 10 us an op and 4 ns a byte; 8000 bytes in each of two rounds. FP32 is as the wire.
  Cluster cores = virtual_cluster(2);
  cores.exchange->kinds["exchange all_reduce bf16"] = {{0.25e9}, Time{10'000}};
  const Layout layout = make_layout({.ranks = 2, .expert = 2});
  Op reduce = communication_op(OpKind::kAllReduce, 8000, Algorithm::kAuto);
  CHECK(run(cores, layout, make_fragment({{reduce}})).end == Time{74'000});
  reduce.dtype = DType::kFp32;
  CHECK(run(cores, layout, make_fragment({{reduce}})).end == Time{20'000});
}

TEST_CASE("communication of virtual ranks holds no cores") {
  Op gather = communication_op(OpKind::kAllGather, 8000);
  gather.units = 60;  // two members of 60 cores each would not fit on the chip
  const WorldRun outcome = run(virtual_cluster(1), ranks_on_one_device(2), make_fragment({{gather}}));
  CHECK(outcome.end == Time{18'000});  // 2 us and twice 8 us over one wire
}

TEST_CASE("virtual ranks copy rows to their experts and pack them first where the machine does") {
  // Every rank's tokens go where the route says; the busiest member decides.
  const auto route =
      std::make_shared<const Route>(RouteSpec{.ranks = 2, .experts = 4, .active = 2, .tokens = 8});
  double received = 0, packed = 0;
  for (int me = 0; me < 2; ++me) {
    double in = 0, out = 0;
    for (int other = 0; other < 2; ++other) {
      in += route->tokens_between(other, me);
      out += route->tokens_between(me, other);
    }
    received = std::max(received, in);
    packed = std::max(packed, in + out);
  }
  Op dispatch = communication_op(OpKind::kDispatch, 100, Algorithm::kAuto, GroupRole::kExpert);
  dispatch.route = 0;
  const FragmentPtr fragment = make_fragment({{dispatch}}, {route});
  Cluster cluster = virtual_cluster(2);
  const Layout layout = make_layout({.ranks = 2, .expert = 2});
  CHECK(run(cluster, layout, fragment).seconds() == Approx(2e-6 + received * 100e-9));
  cluster.exchange->packs = true;
  CHECK(run(cluster, layout, fragment).seconds() == Approx(2e-6 + packed * 100e-9));
  // Twice the bytes where numbers are held in 32 bits and travel as 16 (BF16).
  cluster.exchange->element_bytes = 4;
  CHECK(run(cluster, layout, fragment).seconds() == Approx(2e-6 + packed * 200e-9));
}
