// The arithmetic of fabrics held against the graph that is drawn of them, on small ones of each family.
#include "tests/unit/hw/topology.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "hw/fabric/figures.h"
#include "hw/fabric/path_health.h"

using namespace moebius;
using namespace moebius::literals;

namespace {

FabricPool quad_servers(int nodes) {
  FabricPool pool;
  pool.nodes = nodes;
  pool.devices_per_node = 4;
  pool.link_rate = {160e9};
  pool.link_latency = 800_ns;
  pool.nic_rate = {48e9};
  return pool;
}

// 8-port leaves of 4 NICs below switches of 8.
FabricSpec small_spec() {
  FabricSpec spec;
  spec.type = "test";
  spec.leaf_ports = 4;
  spec.switch_ports = 8;
  spec.transport_efficiency = 0.96;
  spec.host_latency = 2_us;
  spec.hop_latency = 500_ns;
  return spec;
}

struct Small {
  std::string name;
  Fabric fabric;
};

std::vector<Small> small_fabrics() {
  std::vector<Small> all;
  const auto add = [&](const char* name, FabricSpec spec, std::vector<FabricPool> pools) {
    all.push_back({name, Fabric(std::move(spec), std::move(pools))});
  };
  FabricSpec spec = small_spec();
  add("one leaf for each rail", spec, {quad_servers(4)});
  add("rails, two tiers", spec, {quad_servers(8)});
  spec.oversubscription = 2;
  add("rails, two tiers, 2:1", spec, {quad_servers(8)});
  add("rails, a part-filled leaf", spec, {quad_servers(7)});
  spec = small_spec();
  spec.rail_optimised = false;
  add("no rails", spec, {quad_servers(6)});
  spec.planes = 4;
  add("four planes", spec, {quad_servers(10)});
  spec = small_spec();
  spec.tiers = 3;
  spec.pod_leaves = 1;
  add("three tiers", spec, {quad_servers(16)});
  spec.core_oversubscription = 4;
  spec.spine_uplinks = 1;
  add("three tiers, 4:1 at the core", spec, {quad_servers(16)});
  spec = small_spec();
  spec.nic_ports = 2;
  spec.leaf_uplinks = 2;  // of each twin, of the whole NIC's speed: 4 x 24 / 2 x 48
  add("twin leaves", spec, {quad_servers(8)});
  spec.tiers = 3;
  spec.pod_leaves = 1;
  spec.core_oversubscription = 2;
  add("twin leaves, three tiers", spec, {quad_servers(12)});
  FabricPool far = quad_servers(5);
  far.region = 1;
  for (const int tiers : {2, 3}) {
    spec = small_spec();
    spec.tiers = tiers;
    spec.pod_leaves = 1;
    spec.region_distance = {30e3};
    spec.region_rate = {300e9};
    add("two regions", spec, {quad_servers(8), far});
  }
  return all;
}

}  // namespace

TEST_CASE("The switches between two NICs are those on a shortest way of the graph") {
  for (const Small& small : small_fabrics()) {
    INFO(small.name);
    const Topology topology = topology_of(small.fabric);
    for (int from = 0; from < small.fabric.num_devices(); from += 3) {
      for (int to = 0; to < small.fabric.num_devices(); ++to) {
        if (small.fabric.node_of(from) == small.fabric.node_of(to)) continue;
        const auto [sender, receiver] = small.fabric.over_nics(from, to);
        INFO(from << " to " << to << " over " << sender << " and " << receiver);
        REQUIRE(small.fabric.switches(from, to) == shortest_ways(topology, sender, receiver).switches);
      }
    }
  }
}

TEST_CASE("Inside a region a message has as many paths as the graph has shortest ways") {
  for (const Small& small : small_fabrics()) {
    INFO(small.name);
    const Topology topology = topology_of(small.fabric);
    for (int to = 1; to < small.fabric.num_devices(); ++to) {
      if (small.fabric.distance(0, to) < Distance::kLeaf) continue;
      if (small.fabric.distance(0, to) == Distance::kRegion) continue;
      const auto [sender, receiver] = small.fabric.over_nics(0, to);
      REQUIRE(small.fabric.num_paths(0, to) == shortest_ways(topology, sender, receiver).ways);
    }
  }
}

TEST_CASE("What the first nodes can send to the others is the maximum flow of the graph, wherever one cuts") {
  for (const Small& small : small_fabrics()) {
    INFO(small.name);
    const Topology topology = topology_of(small.fabric);
    for (int split = 1; split < small.fabric.layout().nodes; ++split) {
      INFO(split << " nodes against the rest");
      REQUIRE(cut_rate(small.fabric, split).value ==
              Approx(max_flow(small.fabric, topology, split).value).epsilon(1e-6));
    }
  }
}

TEST_CASE(
    "Every path by ports is a way of the graph: each wire but the last enters what the next one leaves") {
  for (const Small& small : small_fabrics()) {
    INFO(small.name);
    const Fabric& fabric = small.fabric;
    for (int to = 0; to < fabric.num_devices(); to += 5) {
      for (int path = 0; path < fabric.num_paths(1, to); ++path) {
        std::vector<WireId> wires;
        fabric.route_by_ports(1, to, path, wires);
        for (const WireId wire : wires) REQUIRE(fabric.capacity(wire).value > 0);
        const auto count = [&](WireKind kind) {
          return std::count_if(wires.begin(), wires.end(), [&](WireId w) { return w.kind == kind; });
        };
        REQUIRE(count(WireKind::kLeafUpPort) == count(WireKind::kLeafDownPort));
        REQUIRE(count(WireKind::kPodUpPort) == count(WireKind::kPodDownPort));
        const bool twins = fabric.spec().nic_ports > 1 && fabric.node_of(to) != 0;
        REQUIRE(count(WireKind::kNicOutPort) == (twins ? 1 : 0));
        REQUIRE(count(WireKind::kNicOut) == (twins || fabric.node_of(to) == 0 ? 0 : 1));
      }
    }
  }
}

TEST_CASE("Ports of a bundle carry together what the bundle carries") {
  for (const Small& small : small_fabrics()) {
    INFO(small.name);
    const Fabric& fabric = small.fabric;
    if (fabric.spec().tiers < 2) continue;
    double ports = 0;
    for (int u = 0; u < fabric.leaf_uplinks(); ++u)
      ports += fabric.capacity({WireKind::kLeafUpPort, u}).value;
    REQUIRE(ports == Approx(fabric.capacity({WireKind::kLeafUp, 0}).value));
    REQUIRE(fabric.capacity({WireKind::kNicOutPort, 0}).value * fabric.spec().nic_ports == Approx(48e9));
  }
}

TEST_CASE("Switches are counted as published clusters have them") {
  // DeepSeek's multi-plane tree (ISCA 2025): 16,384 accelerators, 8 planes of 64-port switches, 768 of them.
  FabricSpec planes = small_spec();
  planes.rail_optimised = false;
  planes.planes = 8;
  planes.leaf_ports = 32;
  planes.switch_ports = 64;
  FabricPool hosts = quad_servers(2048);
  hosts.devices_per_node = 8;
  const FabricFigures deepseek = figures_of(Fabric(planes, {hosts}));
  REQUIRE(deepseek.tiers.size() == 2);
  REQUIRE(deepseek.tiers[0].switches == 512);
  REQUIRE(deepseek.tiers[1].switches == 256);
  // DGX SuperPOD H100, four units: 127 nodes on 32 leaves and 16 spines.
  FabricSpec pod = planes;
  pod.planes = 1;
  pod.rail_optimised = true;
  hosts.nodes = 127;
  const FabricFigures four_units = figures_of(Fabric(pod, {hosts}));
  REQUIRE(four_units.tiers[0].switches == 32);
  REQUIRE(four_units.tiers[1].switches == 16);
  // A three-tier tree of 64-port switches for 65,536 ends (ISCA 2025): 2,048 + 2,048 + 1,024 = 5,120.
  pod.tiers = 3;
  hosts.nodes = 8192;
  const FabricFigures tree = figures_of(Fabric(pod, {hosts}));
  REQUIRE(tree.tiers[0].switches + tree.tiers[1].switches + tree.tiers[2].switches == 5120);
}

TEST_CASE("Uplinks lead to the spines that are counted") {
  // 2 x 4 leaves of 4 uplinks below spines of 16 ports: 2, each for 2 uplinks of every leaf. With twin
  // leaves, which are planes of their own, twice as many: even uplinks lead to even ones.
  FabricSpec spec = small_spec();
  spec.switch_ports = 16;
  for (const int twins : {1, 2}) {
    spec.nic_ports = twins;
    const Fabric fabric(spec, {quad_servers(8)});
    REQUIRE(fabric.leaf_uplinks() == 4 * twins);
    REQUIRE(fabric.num_spines() == 2 * twins);
    REQUIRE(fabric.num_spines() == figures_of(fabric).tiers[1].switches);
    for (int uplink = 0; uplink < 4 * twins; ++uplink)
      REQUIRE(fabric.spine_of(5, uplink) == uplink / twins / 2 * twins + uplink % twins);
  }
  // Of three tiers each uplink leads to a spine of its own: the second of 8 pods has those from 4 on.
  spec.nic_ports = 1;
  spec.switch_ports = 8;
  spec.tiers = 3;
  const Fabric tall(spec, {quad_servers(32)});
  REQUIRE(tall.num_spines() == figures_of(tall).tiers[1].switches);
  REQUIRE(tall.spine_of(5, 3) == 4 + 3);
}

TEST_CASE("Parts that the network does not have are none of it") {
  FabricSpec spec = small_spec();
  const Fabric two(spec, {quad_servers(8)}), one(spec, {quad_servers(4)});
  REQUIRE(problem_of({FabricPart::kSpine, 4}, two) == "spine 4: expected 0 to 3");
  REQUIRE(problem_of({FabricPart::kSpineUplink, 0, 0}, two) == "uplink 0: the spines of two tiers have none");
  REQUIRE(problem_of({FabricPart::kSpine, 0}, one) == "spine 0: the network has none");
  REQUIRE(problem_of({FabricPart::kLeafUplink, 0, 0}, one) == "uplink 0: leaves of one tier have none");
}

TEST_CASE("A NIC is one part by each device that it serves") {
  FabricPool pairs = quad_servers(8);
  pairs.devices_per_nic = 2;
  const Fabric fabric(small_spec(), {pairs});
  REQUIRE(same_part({FabricPart::kNic, 4, 0, 0.5}, {FabricPart::kNic, 5}, fabric));
  REQUIRE_FALSE(same_part({FabricPart::kNic, 5}, {FabricPart::kNic, 6}, fabric));
}

TEST_CASE("The largest sizes are those of full trees") {
  // 4 rails on leaves of 4: two groups of 4 nodes fill the 8 ports of a spine; a pod holds 1 group, 8 pods.
  const FabricPool pool = quad_servers(1);
  REQUIRE(most_nodes(small_spec(), pool, 1) == 4);
  REQUIRE(most_nodes(small_spec(), pool, 2) == 8);
  REQUIRE(most_nodes(small_spec(), pool, 3) == 32);
}
