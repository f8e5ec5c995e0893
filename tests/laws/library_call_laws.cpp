// Collectives of one scale-up domain, simulated with the constants of the chip's library.
#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "tests/laws/small_world.h"
#include "workloads/cost/collective_model.h"

using namespace moebius;

namespace {

Cluster one_node(const std::string& chip, const std::string& node, CollectiveSource source) {
  const Catalog catalog;
  Cluster cluster = build_cluster({{"all", catalog.accelerator(chip), catalog.node(node), 1}},
                                  catalog.fabric("single-node"), Place{"test", "", 0});
  cluster.collectives = source;
  return cluster;
}

// Eight H100 on two boards of a node.
Cluster two_boards(double efficiency, Time latency, CollectiveSource source = CollectiveSource::kLibrary) {
  const Catalog catalog;
  Node node = catalog.node("hgx-8");
  node.board = 4;
  node.board_efficiency = efficiency;
  node.board_latency = latency;
  Cluster cluster = build_cluster({{"all", catalog.accelerator("h100-sxm"), node, 1}},
                                  catalog.fabric("single-node"), Place{"test", "", 0});
  cluster.collectives = source;
  return cluster;
}

double simulated(const Cluster& cluster, const CollectiveCall& call, bool fold = true) {
  const Layout layout = make_layout({.ranks = call.devices, .fold = fold});
  Op op = communication_op(call.kind, call.bytes);
  op.algorithm = Algorithm::kAuto;
  return simulate({cluster, layout, on_all_classes(layout, make_fragment({{op}})), {}, {}}).seconds();
}

}  // namespace

TEST_CASE("on an idle node a collective takes what the model of the library says") {
  const struct {
    const char *chip, *node;
  } machines[] = {{"h100-sxm", "hgx-8"}, {"a100-sxm", "hgx-8"}, {"h800-sxm", "hgx-8"}};
  for (const auto& machine : machines) {
    const Cluster cluster = one_node(machine.chip, machine.node, CollectiveSource::kLibrary);
    const LinkConstants link = *link_constants(cluster.pools[0].accelerator);
    for (const OpKind kind : {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kReduceScatter,
                              OpKind::kBroadcast, OpKind::kAllToAll})
      for (const int devices : {2, 4, 8})
        for (const double bytes : {1024.0, 262144.0, 4194304.0, 536870912.0}) {
          const CollectiveCall call{kind, devices, bytes};
          INFO(machine.chip << " " << to_string(kind) << " " << devices << " devices, " << bytes << " bytes");
          for (const bool fold : {true, false})
            CHECK(simulated(cluster, call, fold) == Approx(nccl_figures(link, call).seconds).epsilon(0.01));
        }
  }
}

// nccl-tests on one server (NF5688M7) of eight H800. Nothing was fitted to them.
TEST_CASE("a broadcast between eight devices is predicted within 20 % of what was measured") {
  const Cluster node = one_node("h800-sxm", "hgx-8", CollectiveSource::kLibrary);
  const struct {
    double bytes, seconds;
  } rows[] = {{1048576, 43.4e-6},   {8388608, 69.51e-6},    {16777216, 123e-6},
              {67108864, 430.6e-6}, {268435456, 1649.9e-6}, {1073741824, 6520.1e-6}};
  for (const auto& row : rows) {
    INFO(row.bytes << " bytes");
    CHECK(simulated(node, {OpKind::kBroadcast, 8, row.bytes}) == Approx(row.seconds).epsilon(0.2));
  }
}

// Over host bridges eight L40S were measured to pass 1.5 GB/s, whatever the operation.
TEST_CASE("a broadcast takes no less than a gather of the same buffer") {
  for (const auto& [chip, node] : {std::pair{"l40s", "pcie-8"}, {"h100-sxm", "hgx-8"}}) {
    const Cluster cluster = one_node(chip, node, CollectiveSource::kLibrary);
    for (const double bytes : {16777216.0, 268435456.0}) {
      const double gather = simulated(cluster, {OpKind::kAllGather, 8, bytes});
      const double broadcast = simulated(cluster, {OpKind::kBroadcast, 8, bytes});
      INFO(chip << " " << bytes << " bytes");
      CHECK(broadcast > 0.95 * gather);
      CHECK(broadcast < 1.25 * gather);
    }
  }
}

// 2 (n - 1) steps of LL: what 8 devices take more than 2 is 12 steps, whatever the launch.
TEST_CASE("a small all-reduce takes a launch and a step's latency for each step of the ring") {
  const LinkConstants link = *link_constants(Catalog().accelerator("h100-sxm"));
  const auto seconds = [&](int devices) {
    return nccl_figures(link, {OpKind::kAllReduce, devices, 8}).seconds;
  };
  CHECK(seconds(8) - seconds(2) == Approx(12 * link.step_ll).epsilon(0.01));
  CHECK(seconds(2) == Approx(link.launch + 2 * link.step_ll).epsilon(0.01));
}

// Eight GB200 of two trays, nccl-tests out of place (oracle-quickstart/oci-hpc-oke, README of GB200). Nothing
// was fitted to them: the switch is told by eight B300.
TEST_CASE("all-reduce between eight of a rack takes what it takes between eight of a board") {
  const Cluster rack = one_node("gb200-nvl72", "gb200-nvl72", CollectiveSource::kLibrary);
  const struct {
    double bytes, seconds;
  } rows[] = {{134217728, 386.9e-6}, {268435456, 698.9e-6}, {536870912, 1314.7e-6}, {1073741824, 2544e-6}};
  for (const auto& row : rows) {
    INFO(row.bytes << " bytes");
    CHECK(simulated(rack, {OpKind::kAllReduce, 8, row.bytes}) == Approx(row.seconds).epsilon(0.15));
  }
}

// One rack of GB200, nccl-tests out of place (coreweave/nccl-tests pull request 43, February 2025). Nothing
// was fitted to them. 512 MiB took 297 GB/s, the others 345 to 426: 26 % short here.
TEST_CASE("all-reduce in a rack of 72 is predicted within 20 % by what eight devices were measured to take") {
  const Cluster rack = one_node("gb200-nvl72", "gb200-nvl72", CollectiveSource::kLibrary);
  const struct {
    double bytes, seconds, within;
  } rows[] = {{536870912, 1806.7e-6, 0.3},
              {1073741824, 3108.8e-6, 0.2},
              {2147483648, 5589.1e-6, 0.2},
              {4294967296, 10094e-6, 0.2},
              {8589934592, 20299e-6, 0.2}};
  for (const auto& row : rows) {
    INFO(row.bytes << " bytes");
    CHECK(simulated(rack, {OpKind::kAllReduce, 72, row.bytes}) == Approx(row.seconds).epsilon(row.within));
  }
}

// A ring of 72 takes 142 steps of LL, 178 us; the switch asks all of them at once.
TEST_CASE("where the switch reduces, a small all-reduce takes no longer among more devices") {
  const Cluster rack = one_node("gb200-nvl72", "gb200-nvl72", CollectiveSource::kLibrary);
  const LinkConstants link = *link_constants(rack.pools[0].accelerator);
  const auto seconds = [&](int devices, double bytes) {
    return simulated(rack, {OpKind::kAllReduce, devices, bytes});
  };
  CHECK(seconds(72, 8) == Approx(link.launch + link.step_in_switch).epsilon(0.01));
  CHECK(seconds(72, 8) == Approx(seconds(32, 8)).epsilon(0.01));
  CHECK(seconds(16, 8) == Approx(link.launch + 30 * link.step_ll).epsilon(0.01));  // a ring still
  for (const double bytes : {8.0, 65536.0, 33554432.0, 1073741824.0})
    for (const int devices : {16, 32, 64}) {
      INFO(bytes << " bytes, from " << devices << " to " << (devices == 64 ? 72 : 2 * devices) << " devices");
      CHECK(seconds(devices == 64 ? 72 : 2 * devices, bytes) < 1.5 * seconds(devices, bytes));
    }
}

TEST_CASE("a framework's all-reduce comes before the library's up to its limit") {
  const Cluster cluster = one_node("h100-sxm", "hgx-8", CollectiveSource::kSglang);
  const Cluster library = one_node("h100-sxm", "hgx-8", CollectiveSource::kLibrary);
  const CollectiveCall small{OpKind::kAllReduce, 8, 65536}, large{OpKind::kAllReduce, 8, 67108864};
  CHECK(simulated(cluster, small) < 0.5 * simulated(library, small));
  const Cluster vllm = one_node("h100-sxm", "hgx-8", CollectiveSource::kVllm);
  CHECK(simulated(vllm, large) == Approx(simulated(library, large)));
}

// sgl-project/sglang pull request 3502: 1,023 us without the switch, 844 with it, between eight H100.
TEST_CASE("SGLang's large all-reduce goes round a ring, as it starts the library") {
  const Cluster cluster = one_node("h100-sxm", "hgx-8", CollectiveSource::kSglang);
  const Cluster library = one_node("h100-sxm", "hgx-8", CollectiveSource::kLibrary);
  const CollectiveCall large{OpKind::kAllReduce, 8, 400e6}, gather{OpKind::kAllGather, 8, 400e6};
  CHECK(simulated(cluster, large) / simulated(library, large) == Approx(1023.0 / 844).epsilon(0.05));
  CHECK(simulated(cluster, gather) == Approx(simulated(library, gather)));
  const CollectiveCall four{OpKind::kAllReduce, 4, 400e6};  // no switch between four
  CHECK(simulated(cluster, four) == Approx(simulated(library, four)));
}

TEST_CASE("a chip whose link is slower has its library's rates in proportion") {
  const Catalog catalog;
  const LinkConstants h100 = *link_constants(catalog.accelerator("h100-sxm"));
  const LinkConstants h800 = *link_constants(catalog.accelerator("h800-sxm"));
  // 200 GB/s x 0.8 against 450 GB/s x 0.79.
  CHECK(h800.rate_two / h100.rate_two == Approx(160 / 355.5));
  CHECK(h800.launch == h100.launch);
  CHECK(h800.estimated);
  CHECK_FALSE(h100.estimated);
}

// Kernels' profiles come with the base too (find_profiles()). Its own link, where it has another, counts.
TEST_CASE("a chip that stands on another in a catalog has its library") {
  const Catalog catalog;
  for (const char* base : {"h100-sxm", "h800-sxm", "b200-sxm"}) {
    const Accelerator chip = catalog.accelerator(base);
    Accelerator copy = chip;
    copy.id = "my-copy";
    copy.aliases = {};
    copy.bases = {base};
    INFO(base);
    const std::optional<LinkConstants> link = link_constants(copy);
    REQUIRE(link);
    CHECK(link->rate_two == link_constants(chip)->rate_two);
    CHECK(link->channels == link_constants(chip)->channels);
    CHECK(link->estimated == link_constants(chip)->estimated);
    CHECK(framework_constants(copy, "sglang").has_value());
  }
  Accelerator other = catalog.accelerator("h100-sxm");
  other.id = "my-chip";
  other.bases = {};
  CHECK_FALSE(link_constants(other));
}

// Rings take the links of a full mesh in different orders: with all members of a node each sends over all of
// its links, with four of eight over three of seven.
TEST_CASE(
    "over direct links a collective takes the library's launch, steps and rate, and no more than its links") {
  for (const auto& [chip, node] : {std::pair{"mi300x", "mi300x-8"}, {"ascend-910b", "ascend-910b-8"}}) {
    const Cluster cluster = one_node(chip, node, CollectiveSource::kLibrary);
    LinkConstants link = *link_constants(cluster.pools[0].accelerator);
    link.neighbour_more = link.message_more = cluster.fabric.latency(0, 1).seconds() - link.latency;
    link.one_order = false;
    link.in_switch_share = 0;
    const double all = link.achieved;
    for (const OpKind kind :
         {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kBroadcast, OpKind::kAllToAll}) {
      const CollectiveCall small{kind, 8, 8192}, large{kind, 8, 1e9};
      INFO(chip << " " << to_string(kind));
      CHECK(simulated(cluster, small) == Approx(nccl_figures(link, small).seconds).epsilon(0.02));
      CHECK(simulated(cluster, large) >= wire_bytes(large) / all * (1 - 1e-9));
      CHECK(simulated(cluster, large) == Approx(nccl_figures(link, large).seconds).epsilon(0.05));
      const CollectiveCall few{kind, 4, 1e9};
      CHECK(simulated(cluster, few) == Approx(wire_bytes(few) / (all * 3 / 7)).epsilon(0.1));
    }
  }
}

constexpr OpKind kKinds[] = {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kReduceScatter,
                             OpKind::kAllToAll};

TEST_CASE("boards make no collective of a node faster, and their links and latency count") {
  for (const CollectiveSource source :
       {CollectiveSource::kLibrary, CollectiveSource::kSglang, CollectiveSource::kStructure}) {
    const Cluster whole = one_node("h100-sxm", "hgx-8", source);
    const Cluster equal = two_boards(1, {}, source), narrow = two_boards(0.1, {}, source);
    const Cluster far = two_boards(1, Time{50'000}, source);
    for (const OpKind kind : kKinds)
      for (const double bytes : {1024.0, 1048576.0, 1e8}) {
        const CollectiveCall call{kind, 8, bytes};
        INFO(to_string(kind) << " of " << bytes << " bytes, collectives " << to_string(source));
        const double on_boards = simulated(equal, call);
        CHECK(on_boards >= simulated(whole, call) * (1 - 1e-9));
        CHECK(simulated(narrow, call) >= on_boards * (1 - 1e-9));
        CHECK(simulated(far, call) > on_boards);
      }
  }
  // A tenth of 355.5 GB/s is what a ring passes from board to board.
  CHECK(simulated(two_boards(0.1, {}), {OpKind::kAllReduce, 8, 1e8}) ==
        Approx(1e8 * 2 * 7 / 8 / 35.55e9).epsilon(0.02));
}

TEST_CASE("a link that cannot reduce has no all-reduce in the switch") {
  Catalog catalog;
  Accelerator chip = catalog.accelerator("h100-sxm");
  chip.link_reduces = false;
  Cluster plain = build_cluster({{"all", chip, catalog.node("hgx-8"), 1}}, catalog.fabric("single-node"),
                                Place{"test", "", 0});
  plain.collectives = CollectiveSource::kLibrary;
  const Cluster reduces = one_node("h100-sxm", "hgx-8", CollectiveSource::kLibrary);
  const CollectiveCall large{OpKind::kAllReduce, 8, 1e9}, gather{OpKind::kAllGather, 8, 1e9};
  // No more than the link sustains, which the switch halves the bytes of.
  CHECK(simulated(plain, large) >= 1e9 * 2 * 7 / 8 / 355.5e9);
  CHECK(simulated(reduces, large) < 1e9 * 2 * 7 / 8 / 355.5e9);
  CHECK(simulated(plain, gather) == simulated(reduces, gather));
}

// 14 steps of a ring; messages of an all-to-all go at once.
TEST_CASE("steps are as much longer as messages of the node are than where they were measured") {
  Catalog catalog;
  const auto with = [&](double microseconds) {
    Node node = catalog.node("hgx-8");
    node.scale_up_latency = time_from_seconds(microseconds * 1e-6);
    Cluster cluster = build_cluster({{"all", catalog.accelerator("h100-sxm"), node, 1}},
                                    catalog.fabric("single-node"), Place{"test", "", 0});
    cluster.collectives = CollectiveSource::kLibrary;
    return cluster;
  };
  const CollectiveCall ring{OpKind::kAllReduce, 8, 8}, messages{OpKind::kAllToAll, 8, 1024};
  const Cluster near = with(0.8), far = with(50);
  CHECK(simulated(far, ring) - simulated(near, ring) == Approx(14 * 49.2e-6).epsilon(0.01));
  CHECK(simulated(far, messages) - simulated(near, messages) == Approx(49.2e-6).epsilon(0.01));
  CHECK(simulated(with(0.5), ring) == simulated(near, ring));
}
