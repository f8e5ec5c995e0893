// Regions joined by fibre, boards of super-nodes, and NICs with ports into twin leaves.
#include "hw/fabric/fabric.h"

#include "hw/error.h"

#include <string>
#include <vector>
#include "tests/catch.h"

using namespace moebius;
using namespace moebius::literals;

namespace {

FabricSpec regions_spec() {
  FabricSpec spec;
  spec.type = "test";
  spec.leaf_ports = 32;
  spec.switch_ports = 64;
  spec.transport_efficiency = 0.92;
  spec.host_latency = 2350_ns;
  spec.hop_latency = 450_ns;
  spec.region_distance = {30e3};
  spec.region_rate = {100e9};
  return spec;
}

FabricPool servers_of_region(int nodes, int region = 0) {
  FabricPool pool;
  pool.nodes = nodes;
  pool.devices_per_node = 8;
  pool.link_rate = {160e9};
  pool.link_latency = 800_ns;
  pool.nic_rate = {46e9};
  pool.region = region;
  return pool;
}

FabricPool super_node() {
  FabricPool pool = servers_of_region(2);
  pool.devices_per_node = 16;
  pool.rails = 8;
  pool.board = 8;
  pool.board_latency = 1000_ns;
  pool.board_rate = pool.link_rate * 0.97;
  return pool;
}

std::string text_of(const std::vector<WireId>& wires) {
  std::string text;
  for (const WireId wire : wires)
    text += (text.empty() ? "" : ", ") + std::string(to_string(wire.kind)) + " " + std::to_string(wire.index);
  return text;
}

std::string regional_way(const Fabric& fabric, int from, int to) {
  std::vector<WireId> wires;
  fabric.route(from, to, wires);
  return text_of(wires);
}

std::string way_by_ports(const Fabric& fabric, int from, int to, int path) {
  std::vector<WireId> wires;
  fabric.route_by_ports(from, to, path, wires);
  return text_of(wires);
}

}  // namespace

TEST_CASE("A message to another region crosses both trees, two border switches and the fibre") {
  // 64 nodes are two groups of leaves, region 1 starts on the third: leaf 2 x 8 + 2.
  const Fabric fabric(regions_spec(), {servers_of_region(64), servers_of_region(32, 1)});
  REQUIRE(fabric.num_regions() == 2);
  REQUIRE(fabric.region_of(511) == 0);
  REQUIRE(fabric.region_of(512) == 1);
  REQUIRE(fabric.distance(2, 514) == Distance::kRegion);
  REQUIRE(regional_way(fabric, 2, 514) == "nic-out 2, leaf-up 2, region-link 1, leaf-down 18, nic-in 514");
  REQUIRE(regional_way(fabric, 514, 2) == "nic-out 514, leaf-up 18, region-link 2, leaf-down 2, nic-in 2");
  // Leaf, spine and border on each side, 30 km at 5 us: 2,350 + 6 x 450 + 150,000.
  REQUIRE(fabric.switches(2, 514) == 6);
  REQUIRE(fabric.latency(2, 514) == 155'050_ns);
  REQUIRE(fabric.capacity({WireKind::kRegionLink, 1}).value == Approx(92e9));
  REQUIRE(fabric.can_bind(WireKind::kRegionLink));
}

TEST_CASE("Inside a region nothing changes") {
  const Fabric alone(regions_spec(), {servers_of_region(64)});
  const Fabric joined(regions_spec(), {servers_of_region(64), servers_of_region(32, 1)});
  for (int to = 0; to < alone.num_devices(); ++to) {
    REQUIRE(regional_way(joined, 3, to) == regional_way(alone, 3, to));
    REQUIRE(joined.latency(3, to) == alone.latency(3, to));
  }
  REQUIRE_FALSE(alone.can_bind(WireKind::kRegionLink));
}

TEST_CASE("Regions of one leaf for each rail are joined above the leaves") {
  const Fabric fabric(regions_spec(), {servers_of_region(4), servers_of_region(4, 1)});
  REQUIRE(fabric.spec().tiers == 1);
  REQUIRE(regional_way(fabric, 2, 32 + 2) == "nic-out 2, region-link 1, nic-in 34");
  REQUIRE(fabric.switches(2, 34) == 4);
}

TEST_CASE("No pod reaches over two regions") {
  FabricSpec spec = regions_spec();
  spec.tiers = 3;
  spec.pod_leaves = 2;
  // Groups 0 to 2 are pods 0 and 1; region 1 starts on group 4, pod 2.
  const Fabric fabric(spec, {servers_of_region(96), servers_of_region(32, 1)});
  REQUIRE(regional_way(fabric, 0, 96 * 8) ==
          "nic-out 0, leaf-up 0, pod-up 0, region-link 1, pod-down 2, leaf-down 32, nic-in 768");
  REQUIRE(fabric.switches(0, 768) == 8);
  REQUIRE(fabric.can_bind(WireKind::kPodUpPort));
}

TEST_CASE("Each pair of regions has a link of its own in each direction") {
  const Fabric fabric(regions_spec(),
                      {servers_of_region(4), servers_of_region(4, 1), servers_of_region(4, 2)});
  REQUIRE(regional_way(fabric, 0, 64) == "nic-out 0, region-link 2, nic-in 64");    // 0 to 2: 0 x 3 + 2
  REQUIRE(regional_way(fabric, 64, 32) == "nic-out 64, region-link 7, nic-in 32");  // 2 to 1: 2 x 3 + 1
}

TEST_CASE("Regions that nothing joins, or that do not stand together, are refused") {
  FabricSpec spec = regions_spec();
  spec.region_rate = {};
  REQUIRE(Fabric::problem(spec, {servers_of_region(4), servers_of_region(4, 1)}) ==
          "2 regions, but nothing joins them: expected \"region_rate\", and \"region_distance\", of the "
          "fabric");
  REQUIRE(Fabric::problem(spec, {servers_of_region(4)}).empty());
  REQUIRE(Fabric::problem(regions_spec(),
                          {servers_of_region(4), servers_of_region(4, 1), servers_of_region(4)}) ==
          "pool 2 stands in region 0 after one in region 1: pools of one region stand together");
}

TEST_CASE("Each region is held to what its own tree can join") {
  FabricSpec spec = regions_spec();
  spec.tiers = 2;
  REQUIRE(Fabric::problem(spec, {servers_of_region(256), servers_of_region(256, 1)}).empty());
  REQUIRE_FALSE(Fabric::problem(spec, {servers_of_region(256), servers_of_region(257, 1)}).empty());
}

TEST_CASE("Between boards of a super-node a message takes longer and passes the boards' links") {
  const Fabric fabric(regions_spec(), {super_node()});
  REQUIRE(regional_way(fabric, 1, 5) == "scale-up-out 1, scale-up-in 5");
  REQUIRE(regional_way(fabric, 1, 9) == "scale-up-out 1, board-out 1, board-in 9, scale-up-in 9");
  REQUIRE(fabric.distance(1, 5) == Distance::kScaleUp);
  REQUIRE(fabric.distance(1, 9) == Distance::kBoards);
  REQUIRE(fabric.latency(1, 5) == 800_ns);
  REQUIRE(fabric.latency(1, 9) == 1800_ns);
  REQUIRE(fabric.capacity({WireKind::kBoardOut, 1}).value == Approx(0.97 * 160e9));
  REQUIRE(fabric.can_bind(WireKind::kBoardIn));
  REQUIRE_FALSE(Fabric(regions_spec(), {servers_of_region(2)}).can_bind(WireKind::kBoardOut));
}

TEST_CASE("What changes rail on another board pays for both") {
  const Fabric fabric(regions_spec(), {super_node()});
  // From rail 1 to local 10 of the next node, rail 2: by device 10 of the sender's node, on its other board.
  REQUIRE(regional_way(fabric, 1, 16 + 10) ==
          "scale-up-out 1, board-out 1, board-in 10, scale-up-in 10, nic-out 10, nic-in 26");
  REQUIRE(fabric.latency(1, 26) == 2350_ns + 450_ns + 1800_ns);
}

TEST_CASE("A NIC with two ports is one bundle, or by ports a regional_way over either twin") {
  FabricSpec spec = regions_spec();
  spec.nic_ports = 2;
  spec.leaf_uplinks = 16;  // of each twin: 32 in all
  const Fabric fabric(spec, {servers_of_region(64)});
  REQUIRE(fabric.leaf_uplinks() == 32);
  REQUIRE(fabric.num_paths(0, 1) == 1);
  REQUIRE(fabric.num_paths(0, 8) == 2);  // one leaf, two twins
  REQUIRE(fabric.num_paths(0, 32 * 8) == 32);
  REQUIRE(regional_way(fabric, 0, 8) == "nic-out 0, nic-in 8");
  REQUIRE(way_by_ports(fabric, 0, 8, 1) == "nic-out-port 1, nic-in-port 17");
  // Uplink 7 is of twin 1; leaf 0 and leaf 8 (group 1, rail 0) have 32 uplinks each.
  REQUIRE(way_by_ports(fabric, 0, 256, 7) ==
          "nic-out-port 1, leaf-up-port 7, leaf-down-port 263, nic-in-port 513");
  REQUIRE(fabric.capacity({WireKind::kNicOutPort, 1}).value == Approx(23e9));
  REQUIRE(fabric.capacity({WireKind::kLeafUpPort, 7}).value == Approx(46e9));
}
