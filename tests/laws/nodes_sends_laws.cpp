// All-to-all between nodes as NCCL's sends and receives: what the host posts, chunks that are copied before
// and after their messages, and what published calls took.
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "hw/catalog.h"
#include "tests/laws/small_world.h"
#include "workloads/cost/nodes_model.h"
#include "workloads/cost/nodes_tuner.h"

using namespace moebius;

namespace {

struct SendingNodes {
  std::string chip = "h100-sxm", fabric = "rail-optimised-clos";
  int nodes = 2, per_node = 8;  // with a NIC of 400 Gb/s for each
};

double seconds_of_sends(const SendingNodes& machine, double bytes, bool fold = true,
                        NetworkDetail detail = NetworkDetail::kFluid) {
  const Catalog catalog;
  FabricSpec spec = catalog.fabric(machine.fabric);
  spec.nic = {50e9};
  spec.nic_given = true;
  auto node = catalog.node("hgx-8");
  node.accelerators = node.nics = machine.per_node;
  Cluster cluster = build_cluster({{"all", catalog.accelerator(machine.chip), node, machine.nodes}}, spec,
                                  Place{"test", "", 0});
  cluster.collectives = CollectiveSource::kLibrary;
  const Layout layout = make_layout({.ranks = machine.nodes * machine.per_node, .fold = fold});
  Op op = communication_op(OpKind::kAllToAll, bytes);
  op.algorithm = Algorithm::kAuto;
  const SimOptions options{detail, Driver::kPlain};
  return simulate({cluster, layout, on_all_classes(layout, make_fragment({{op}})), {}, options}).seconds();
}

NodesCall sends_of(const std::string& chip, int nodes, double bytes) {
  const NodesPlace place{.nodes = nodes,
                         .per_node = 8,
                         .nics = 8,
                         .nic_rate = 46e9,
                         .message = 2.8e-6,
                         .farthest = 2.8e-6,
                         .proxies = 8,
                         .per_host = 8};
  return {*link_constants(Catalog().accelerator(chip)), place, {OpKind::kAllToAll, 8 * nodes, bytes}};
}

constexpr double kOfMiB = 1024.0 * 1024;

}  // namespace

// By hand from NCCL 2.28 (src/enqueue.cc, addP2pToPlan).
TEST_CASE("small sends between nodes are cut finer than large ones") {
  CHECK(send_chunk(kOfMiB / 16, Protocol::kSimple) == 32 * 1024);
  CHECK(send_chunk(kOfMiB / 8, Protocol::kSimple) == 64 * 1024);
  CHECK(send_chunk(kOfMiB - 1, Protocol::kSimple) == 64 * 1024);
  CHECK(send_chunk(kOfMiB, Protocol::kSimple) == 128 * 1024);
  CHECK(send_chunk(1024, Protocol::kLL) == 16 * 1024);
}

// 8 MiB over 8 nodes: 128 KiB to each of 56 members elsewhere in two messages. Beside a Xeon a call to the
// NIC takes 1 us, beside an EPYC 2; by rails eight receives and eight flushes are one call each.
TEST_CASE("a NIC's thread posts every message of an all-to-all") {
  const NodesCall call = sends_of("h100-sxm", 8, 8 * kOfMiB);
  CHECK(posting_seconds(call, Algorithm::kRailLocal, Protocol::kSimple) == Approx(111 * 1.25e-6));
  CHECK(posting_seconds(call, Algorithm::kDirect, Protocol::kSimple) == Approx(111 * 3e-6));
  CHECK(posting_seconds(sends_of("a100-sxm", 8, 8 * kOfMiB), Algorithm::kRailLocal, Protocol::kSimple) ==
        Approx(111 * 2.5e-6));
  CHECK(posting_seconds(sends_of("h100-sxm", 8, 1024), Algorithm::kRailLocal, Protocol::kLL) ==
        Approx(55 * 1.125e-6));
  // Two members share a NIC and its thread; hosts of four have no more than four to post together.
  NodesCall shared = call;
  shared.place.nics = shared.place.proxies = shared.place.per_host = 4;
  CHECK(posting_seconds(shared, Algorithm::kRailLocal, Protocol::kSimple) == Approx(223 * 1.5e-6));
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kBroadcast}) {
    NodesCall other = call;
    other.call.kind = kind;
    CHECK(posting_seconds(other, Algorithm::kRing, Protocol::kSimple) == 0);
  }
}

// A channel serves eight members, a sixteenth of it each send: 64 KiB at 2.3 GB/s before and after.
TEST_CASE("the first chunk of a send is copied before the wires have it and the last one after") {
  const NodesCall call = sends_of("h100-sxm", 8, 8 * kOfMiB);
  const LinkConstants& link = call.link;
  const double many = 8 * kOfMiB / (8 * kOfMiB + kManyLines), data = 160e-6;
  const double copies = 2 * 65536 / (link.copy_rate / 24 / 16);
  CHECK(copies == Approx(57e-6).epsilon(0.01));
  // H800 has fewer channels, for its fewer links, each as fast.
  CHECK(link_constants(Catalog().accelerator("h800-sxm"))->channel_copy == link.channel_copy);
  const double start = link.launch + link.launch_growth * many + link.step_ll * 6;
  CHECK(nodes_seconds(call, Algorithm::kDirect, Protocol::kSimple, data) ==
        Approx(start + 2.8e-6 + 10.3e-6 + copies + data));
}

TEST_CASE("an all-to-all of a few bytes takes as long as its messages take to be posted") {
  double before = 0;
  for (const int nodes : {2, 4, 8, 16}) {
    const double seconds = seconds_of_sends({.nodes = nodes}, 1024);
    INFO(nodes << " nodes");
    CHECK(seconds > before + 7 * 1.125e-6);
    CHECK(seconds > (8 * (nodes - 1) - 1) * 1.125e-6);
    before = seconds;
  }
  // Large ones are bound by the NICs: 24 of 32 parts leave a node, at 46 GB/s.
  CHECK(seconds_of_sends({.nodes = 4}, 4e9) == Approx(4e9 * 24 / 32 / 46e9).epsilon(0.02));
}

TEST_CASE("an all-to-all between nodes takes the same folded and not, and at every detail") {
  for (const double bytes : {1024.0, kOfMiB, 8 * kOfMiB, 256 * kOfMiB}) {
    const SendingNodes machine{.nodes = 4};
    const double folded = seconds_of_sends(machine, bytes);
    INFO(bytes << " bytes");
    CHECK(folded == Approx(seconds_of_sends(machine, bytes, false)).epsilon(0.005));
    CHECK(folded == Approx(seconds_of_sends(machine, bytes, true, NetworkDetail::kAlphaBeta)).epsilon(0.02));
  }
}

// scenarios/validate/tables/nccl-all-to-all.csv: nothing here was fitted to these.
TEST_CASE("small all-to-alls between nodes are predicted nearer to what they were measured at") {
  const SendingNodes two{.chip = "h800-sxm", .fabric = "clos-roce", .nodes = 2, .per_node = 2};
  for (const auto& [mib, measured] :
       {std::pair{1, 52.94e-6}, std::pair{2, 72.12e-6}, std::pair{4, 95.86e-6}, std::pair{8, 156.4e-6}}) {
    INFO(mib << " MiB");
    CHECK(seconds_of_sends(two, mib * kOfMiB) == Approx(measured).epsilon(0.12));
  }
  // 8 x 8 H800, 8 MiB, in place and not: 296 and 338 us; by wires and latency alone 183.
  const double seconds = seconds_of_sends({.chip = "h800-sxm", .nodes = 8}, 8 * kOfMiB);
  CHECK(seconds > 0.65 * 338e-6);
  CHECK(seconds < 338e-6);
}
