// What a library's kernels take from the chips that they run on.
#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "sim/traffic/library_cores.h"
#include "tests/laws/small_world.h"
#include "tests/process.h"
#include "workloads/report/report.h"

using namespace moebius;

namespace {

constexpr double kGemm = 1e-3;

Cluster one_node(const std::string& chip, const std::string& node) {
  const Catalog catalog;
  Cluster cluster = build_cluster({{"all", catalog.accelerator(chip), catalog.node(node), 1}},
                                  catalog.fabric("single-node"), Place{"test", "", 0});
  cluster.collectives = CollectiveSource::kLibrary;
  return cluster;
}

// A collective, and products of 1 ms that begin with it; its share of their cores is missing meanwhile.
struct Beside {
  Cluster cluster;
  OpKind kind = OpKind::kAllGather;
  double bytes = 512e6;
  int units = 0;
  int products = 1;
};

WorldRun run(const Beside& beside) {
  const Layout layout = make_layout({.ranks = 8, .fold = true});
  Op op = communication_op(beside.kind, beside.bytes);
  op.algorithm = Algorithm::kAuto;
  op.units = static_cast<std::int16_t>(beside.units);
  std::vector<OpWith> ops{{op}};
  for (int i = 0; i < beside.products; ++i) ops.push_back({compute_op(OpKind::kGemm)});
  return simulate(
      {beside.cluster, layout, on_all_classes(layout, make_fragment(ops)), {{OpKind::kGemm, {kGemm}}}, {}});
}

double seconds_of(const WorldRun& run, int op) {
  return (run.span(0, op).end - run.span(0, op).start).seconds();
}

}  // namespace

TEST_CASE("a product beside a library's collective has the cores that its channels leave") {
  const Cluster h100 = one_node("h100-sxm", "hgx-8");
  const double share = 132.0 / (132 - 24);
  const WorldRun whole = run({h100});
  REQUIRE(seconds_of(whole, 0) > kGemm * share);  // it lasts
  CHECK(seconds_of(whole, 1) == Approx(kGemm * share).epsilon(1e-6));
  CHECK(seconds_of(run({h100, OpKind::kAllGather, 512e6, kCopyEngines}), 1) == Approx(kGemm).epsilon(1e-6));
  CHECK(seconds_of(run({h100, OpKind::kAllGather, 512e6, 10}), 1) == Approx(kGemm * 132 / 122).epsilon(1e-6));
}

// The gather ends first: c seconds at 108 of 132 cores, the rest of the work at 132.
TEST_CASE("a product takes over the cores that communication leaves while it runs") {
  const Cluster h100 = one_node("h100-sxm", "hgx-8");
  const WorldRun both = run({h100, OpKind::kAllGather, 64e6});
  const double gather = seconds_of(both, 0);
  REQUIRE(gather < kGemm);
  CHECK(seconds_of(both, 1) == Approx(gather + kGemm * (1 - gather / kGemm * 108 / 132)).epsilon(1e-6));
}

TEST_CASE("communication of its own engines, or by copy engines, takes no core of a product") {
  CHECK(seconds_of(run({one_node("kunlun-p800", "kunlun-p800-8")}), 1) == Approx(kGemm).epsilon(1e-6));
  Cluster engines = one_node("h100-sxm", "hgx-8");
  engines.copy_engines = true;
  CHECK(seconds_of(run({engines}), 1) == Approx(kGemm).epsilon(1e-6));
  CHECK(seconds_of(run({engines, OpKind::kAllToAll}), 1) == Approx(kGemm).epsilon(1e-6));
  CHECK(seconds_of(run({engines, OpKind::kReduceScatter}), 1) > kGemm * 1.2);  // engines do not add
}

// By the structure alone nothing is known of kernels.
TEST_CASE("a collective without a library holds nothing") {
  Cluster bare = one_node("h100-sxm", "hgx-8");
  bare.collectives = CollectiveSource::kStructure;
  CHECK(seconds_of(run({bare}), 1) == Approx(kGemm).epsilon(1e-6));
}

TEST_CASE("a call holds a multiprocessor for each channel that its bytes fill") {
  const Catalog catalog;
  const Accelerator a100 = catalog.accelerator("a100-sxm"), h800 = catalog.accelerator("h800-sxm");
  const auto cores = [](const Accelerator& chip, OpKind kind, double bytes,
                        Protocol protocol = Protocol::kSimple) {
    return cores_of_call(chip, *link_constants(chip), {kind, 8, bytes}, protocol);
  };
  CHECK(cores(a100, OpKind::kAllGather, 1e9) == 24);
  CHECK(cores(h800, OpKind::kAllGather, 1e9) == 16);  // of 8 links
  CHECK(cores(a100, OpKind::kAllReduce, 64 * 1024, Protocol::kLL) == 2);
  CHECK(cores(a100, OpKind::kAllReduce, 8, Protocol::kLL) == 1);
  CHECK(cores(a100, OpKind::kAllToAll, 1e9) == 27);  // 32, but no more than a quarter of the chip
  const Accelerator h100 = catalog.accelerator("h100-sxm");
  CHECK(cores(h100, OpKind::kAllReduce, 1e9, Protocol::kInSwitch) == 16);
}

TEST_CASE("chips of two kinds, and full meshes, hold cores where a library is known") {
  const Catalog catalog;
  const Layout layout = make_layout({.ranks = 16, .fold = true});
  const auto product = [&](Cluster cluster) {
    cluster.collectives = CollectiveSource::kLibrary;
    Op op = communication_op(OpKind::kAllGather, 512e6);
    op.algorithm = Algorithm::kAuto;
    const FragmentPtr both = make_fragment({{op}, {compute_op(OpKind::kGemm)}});
    return seconds_of(
        simulate({cluster, layout, on_all_classes(layout, both), {{OpKind::kGemm, {kGemm}}}, {}}), 1);
  };
  const auto cluster_of = [&](std::vector<Pool> pools) {
    return build_cluster(std::move(pools), catalog.fabric("rail-optimised-clos"), Place{"test", "", 0});
  };
  const auto pool = [&](const char* chip, const char* node, int nodes) {
    return Pool{chip, catalog.accelerator(chip), catalog.node(node), nodes};
  };
  CHECK(product(cluster_of({pool("a100-sxm", "hgx-8", 1), pool("a800-sxm", "hgx-8", 1)})) > 1.05 * kGemm);
  CHECK(product(cluster_of({pool("mi300x", "mi300x-8", 2)})) > 1.05 * kGemm);
  CHECK(product(cluster_of({pool("ascend-910b1", "ascend-910b-8", 2)})) == Approx(kGemm).epsilon(1e-6));
}

// Of pieces of 8 MB that are gathered: latency and protocol of a library's call are nothing to them.
TEST_CASE("pieces that no library carries out cost what the wires take and a kernel's start") {
  const Cluster b200 = one_node("b200-sxm", "hgx-8");
  const double floor = b200.pools[0].accelerator.kernel_floor.seconds();
  Cluster wires = b200;
  wires.collectives = CollectiveSource::kStructure;
  const double bare = seconds_of(run({wires, OpKind::kAllGather, 8e6}), 0);
  CHECK(seconds_of(run({b200, OpKind::kAllGather, 8e6, kCopyEngines}), 0) ==
        Approx(bare + floor).epsilon(0.02));
  CHECK(seconds_of(run({b200, OpKind::kAllGather, 8e6}), 0) > 1.5 * (bare + floor));
  // Sums are added by kernels that hold a few cores.
  const WorldRun sums = run({b200, OpKind::kReduceScatter, 512e6, kPushKernels});
  CHECK(seconds_of(sums, 1) > kGemm);
  CHECK(seconds_of(sums, 1) <= kGemm * 148 / (148 - 16) * (1 + 1e-6));
}

// As many channels as the library has change nothing; few of them are slower.
TEST_CASE("the number of channels that is given limits the library's rate") {
  const Cluster h100 = one_node("h100-sxm", "hgx-8");
  const auto gather = [&](int units) { return seconds_of(run({h100, OpKind::kAllGather, 512e6, units}), 0); };
  CHECK(gather(24) == Approx(gather(0)).epsilon(1e-6));
  CHECK(gather(4) > 2 * gather(24));
}

TEST_CASE("a ring over nodes is no faster than the bridges inside them") {
  const Catalog catalog;
  const auto seconds = [&](int nodes) {
    Cluster cluster = build_cluster({{"all", catalog.accelerator("l40s"), catalog.node("pcie-8"), nodes}},
                                    catalog.fabric(nodes > 1 ? "rail-optimised-clos" : "single-node"),
                                    Place{"test", "", 0});
    cluster.collectives = CollectiveSource::kLibrary;
    const Layout layout = make_layout({.ranks = 8 * nodes, .fold = true});
    Op op = communication_op(OpKind::kAllGather, 512e6);
    op.algorithm = Algorithm::kAuto;
    return simulate({cluster, layout, on_all_classes(layout, make_fragment({{op}})), {}, {}}).seconds();
  };
  CHECK(seconds(2) > seconds(1));
}

TEST_CASE("what a library copies goes through the memory that others use") {
  const Cluster h100 = one_node("h100-sxm", "hgx-8");
  const Layout layout = make_layout({.ranks = 8, .fold = true});
  Op gather = communication_op(OpKind::kAllGather, 512e6);
  gather.algorithm = Algorithm::kAuto;
  gather.units = kCopyEngines;
  const double rate =
      h100.pools[0].accelerator.memory_rate.value * h100.pools[0].accelerator.memory_efficiency;
  const WorldRun both =
      simulate({h100,
                layout,
                on_all_classes(layout, make_fragment({{gather}, {compute_op(OpKind::kNorm)}})),
                {{OpKind::kNorm, {kGemm, rate * kGemm}}},
                {}});
  const double gathered = 2 * 512e6 * 7 / 8 / seconds_of(both, 0);  // bytes a second in and out
  CHECK(seconds_of(both, 1) == Approx(kGemm * (1 + gathered / rate)).epsilon(0.1));
}

// Experts that two ranks share, all on each pair: dispatch has nowhere to send to, and ends when it has its
// cores.
TEST_CASE("an exchange that ends as it begins leaves its cores to no product that has ended") {
  const test::Scratch scratch;
  const std::string scenario = scratch.write("s.json", R"({
    "moebius": 1, "kind": "training", "name": "shared experts", "model": {"base": "qwen3-30b-a3b", "layers": 2},
    "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
    "plan": {"tp": {"expert": 2}, "dp": {"zero": 3},
             "overlap": {"dispatch_combine": true, "communication_sms": 20}},
    "workload": {"sequence_length": 1024, "global_batch": 16}})");
  for (const std::string detail : {"alpha-beta", "fluid"}) {
    const auto run = test::run_moebius("run " + scenario + " --detail " + detail);
    INFO(run.err);
    CHECK(run.exit_code == 0);
  }
}

// Ranks that hold all experts send no tokens to others.
TEST_CASE("cores that exchanges hold are missing only where there are exchanges") {
  const test::Scratch scratch;
  const auto seconds = [&](const std::string& plan) {
    const std::string scenario = scratch.write("s.json", R"({
      "moebius": 1, "kind": "training", "name": "whole experts",
      "model": {"base": "qwen3-30b-a3b", "layers": 2},
      "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                  "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
      "plan": )" + plan + R"(, "workload": {"sequence_length": 4096, "global_batch": 8}})");
    const auto run = test::run_moebius("run " + scenario + " --json");
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return report_value(run.out, "step_time_s").value_or(0);
  };
  const double whole = seconds("{}");
  CHECK(whole > 0);
  CHECK(seconds(R"({"overlap": {"communication_sms": 60}})") == whole);
  const double shared = seconds(R"({"ep": {"degree": 8}})");
  CHECK(seconds(R"({"ep": {"degree": 8}, "overlap": {"communication_sms": 60}})") > shared);
}
