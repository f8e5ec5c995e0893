// Collectives over racks, super-nodes and boards of direct links as the chip's library carries them out.
#include <algorithm>
#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "tests/laws/small_world.h"

using namespace moebius;

// Racks and super-nodes, one of them and two. Rings over two send less by the links and more by NICs, with
// chunks that overlap: up to a tenth faster where bytes decide.
TEST_CASE("between two super-nodes a collective has the library's launch and steps, too") {
  const Catalog catalog;
  for (const auto& [chip, node] : {std::pair{"gb200-nvl72", "gb200-nvl72"},
                                   {"kunlun-p800-supernode", "kunlun-64"},
                                   {"kunlun-p800-supernode", "kunlun-32"},
                                   {"ascend-910b", "ascend-910b-8"},
                                   {"mi300x", "mi300x-8"}}) {
    Cluster cluster = build_cluster({{"all", catalog.accelerator(chip), catalog.node(node), 2}},
                                    catalog.fabric("clos"), Place{"test", "", 0});
    cluster.collectives = CollectiveSource::kLibrary;
    const int devices = cluster.pools[0].node.accelerators;
    const auto seconds = [&](OpKind kind, double bytes, int ranks) {
      const Layout layout = make_layout({.ranks = ranks, .fold = true});
      Op op = communication_op(kind, bytes);
      op.algorithm = Algorithm::kAuto;
      return simulate({cluster, layout, on_all_classes(layout, make_fragment({{op}})), {}, {}}).seconds();
    };
    for (const OpKind kind :
         {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kAllToAll}) {
      INFO(node << " " << to_string(kind));
      CHECK(seconds(kind, 1024, 2 * devices) >= seconds(kind, 1024, devices));
      if (devices > 8) CHECK(seconds(kind, 16e6, 2 * devices) >= seconds(kind, 16e6, devices));
      CHECK(seconds(kind, 268e6, 2 * devices) >= 0.9 * seconds(kind, 268e6, devices));
    }
  }
}

// A rack has 72 NICs; 32 rings, as many as NCCL looks for, enter and leave it by one each.
TEST_CASE("rings between racks use a NIC each and no more than there are rings") {
  const Catalog catalog;
  Cluster cluster =
      build_cluster({{"all", catalog.accelerator("gb200-nvl72"), catalog.node("gb200-nvl72"), 2}},
                    catalog.fabric("clos"), Place{"test", "", 0});
  cluster.collectives = CollectiveSource::kLibrary;
  const Layout layout = make_layout({.ranks = 144, .fold = true});
  const auto seconds = [&](double bytes) {
    Op op = communication_op(OpKind::kAllGather, bytes);
    op.algorithm = Algorithm::kAuto;
    return simulate({cluster, layout, on_all_classes(layout, make_fragment({{op}})), {}, {}}).seconds();
  };
  const double nics = 32 * cluster.fabric.capacity({WireKind::kNicOut, 0}).value;
  const double link =
      cluster.fabric.capacity({WireKind::kScaleUpOut, 0}).value * 72 / 71;  // or a NIC, once in 72
  CHECK(seconds(64e9) >= 64e9 * 143 / 144 / std::min(nics, link));
}

// Four NICs of 100 Gb/s to an accelerator, or what two accelerators share: the node says so, or the fabric.
TEST_CASE("collectives over NICs that a node brings take as long as over the same that the fabric states") {
  const Catalog catalog;
  for (const auto& [chip, node] : {std::pair{"h100-sxm", "aws-p5-8"}, {"a100-sxm-40gb", "aws-p4d-8"}}) {
    FabricSpec stated = catalog.fabric("aws-efa");
    stated.nic = {12.5e9};
    stated.nic_given = true;
    const auto seconds = [&](const FabricSpec& spec, OpKind kind, bool fold) {
      Cluster cluster = build_cluster({{"all", catalog.accelerator(chip), catalog.node(node), 4}}, spec,
                                      Place{"test", "", 0});
      const Layout layout = make_layout({.ranks = 32, .fold = fold});
      Op op = communication_op(kind, 64e6);
      op.algorithm = Algorithm::kAuto;
      return simulate({cluster, layout, on_all_classes(layout, make_fragment({{op}})), {}, {}}).seconds();
    };
    for (const OpKind kind : {OpKind::kAllReduce, OpKind::kAllToAll}) {
      INFO(node << " " << to_string(kind));
      const double own = seconds(catalog.fabric("aws-efa"), kind, true);
      CHECK(own == seconds(stated, kind, true));
      CHECK(own == Approx(seconds(catalog.fabric("aws-efa"), kind, false)).epsilon(0.005));
    }
    FabricSpec twice = stated;
    twice.nic = {25e9};
    CHECK(seconds(twice, OpKind::kAllToAll, true) < 0.7 * seconds(stated, OpKind::kAllToAll, true));
  }
}
