// Topologies by arithmetic: who hangs where, which wires a message crosses, what they carry, what is refused.
#include "hw/fabric/fabric.h"

#include "hw/error.h"

#include <string>
#include <vector>
#include "tests/catch.h"

using namespace moebius;
using namespace moebius::literals;

namespace {

constexpr ByteRate kNic{46e9};
constexpr ByteRate kLink{160e9};

// 64-port switches: leaves of 32 ports down; hops of 450 ns above 2,350 ns of host.
FabricSpec two_tier_spec() {
  FabricSpec spec;
  spec.type = "test";
  spec.leaf_ports = 32;
  spec.switch_ports = 64;
  spec.transport_efficiency = 0.92;
  spec.host_latency = 2350_ns;
  spec.hop_latency = 450_ns;
  return spec;
}

FabricSpec planes_spec(int planes) {
  FabricSpec spec = two_tier_spec();
  spec.rail_optimised = false;
  spec.planes = planes;
  return spec;
}

FabricPool servers(int nodes) {
  FabricPool pool;
  pool.nodes = nodes;
  pool.devices_per_node = 8;
  pool.link_rate = kLink;
  pool.link_latency = 800_ns;
  pool.nic_rate = kNic;
  return pool;
}

FabricPool pcie_servers(int nodes) {
  FabricPool pool = servers(nodes);
  pool.forwards = false;
  return pool;
}

std::string show(WireId wire) {
  static const char* const names[] = {"out",     "in",        "pair",   "nic-out", "nic-in",
                                      "leaf-up", "leaf-down", "pod-up", "pod-down"};
  return std::string(names[static_cast<int>(wire.kind)]) + " " + std::to_string(wire.index);
}

std::string way(const Fabric& fabric, int from, int to) {
  std::vector<WireId> wires;
  fabric.route(from, to, wires);
  std::string text;
  for (const WireId wire : wires) text += (text.empty() ? "" : ", ") + show(wire);
  return text;
}

std::string refusal(const FabricSpec& spec, const std::vector<FabricPool>& pools) {
  try {
    Fabric fabric(spec, pools);
  } catch (const Error& error) {
    REQUIRE(error.kind() == Error::Kind::kInput);
    REQUIRE(Fabric::problem(spec, pools) == error.what());
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("A device reaches itself over nothing, and a peer of its node over the scale-up link") {
  const Fabric fabric(two_tier_spec(), {servers(2)});
  REQUIRE(way(fabric, 3, 3).empty());
  REQUIRE(fabric.distance(3, 3) == Distance::kSelf);
  REQUIRE(fabric.latency(3, 3) == 0_ns);
  REQUIRE(way(fabric, 3, 5) == "out 3, in 5");
  REQUIRE(fabric.distance(3, 5) == Distance::kScaleUp);
  REQUIRE(fabric.latency(3, 5) == 800_ns);
}

TEST_CASE("The same rail of two nodes on one leaf is one hop") {
  const Fabric fabric(two_tier_spec(), {servers(32)});
  REQUIRE(way(fabric, 2, 8 + 2) == "nic-out 2, nic-in 10");
  REQUIRE(fabric.distance(2, 10) == Distance::kLeaf);
  REQUIRE(fabric.latency(2, 10) == 2800_ns);  // InfiniBand within a leaf: 2.8 us (ISCA 2025)
}

TEST_CASE("The same rail of nodes on two leaves crosses a spine") {
  const Fabric fabric(two_tier_spec(), {servers(64)});
  // Node 32 is the first of the second group; leaf = group x 8 rails + rail.
  REQUIRE(way(fabric, 2, 32 * 8 + 2) == "nic-out 2, leaf-up 2, leaf-down 10, nic-in 258");
  REQUIRE(fabric.distance(2, 258) == Distance::kSpine);
  REQUIRE(fabric.latency(2, 258) == 3700_ns);  // InfiniBand between leaves: 3.7 us (ISCA 2025)
}

TEST_CASE("A message changes rail over the scale-up link, on the device of the destination's local index") {
  const Fabric fabric(two_tier_spec(), {servers(64)});
  REQUIRE(way(fabric, 1, 8 + 6) == "out 1, in 6, nic-out 6, nic-in 14");
  REQUIRE(fabric.distance(1, 14) == Distance::kLeaf);
  REQUIRE(fabric.latency(1, 14) == 3600_ns);  // 2,800 + 800 for the step inside the node
  REQUIRE(way(fabric, 7, 8) == "out 7, in 0, nic-out 0, nic-in 8");  // the ring over consecutive ranks
}

TEST_CASE("Without a scale-up link a message for another rail climbs to the spine") {
  const Fabric fabric(two_tier_spec(), {pcie_servers(4)});
  REQUIRE(way(fabric, 1, 8 + 6) == "nic-out 1, leaf-up 1, leaf-down 6, nic-in 14");
  REQUIRE(fabric.distance(1, 14) == Distance::kSpine);
  REQUIRE(fabric.spec().tiers == 2);  // although all nodes hang on the same leaves
}

TEST_CASE("One tier forces PCIe nodes to forward too, where the specification asks for one") {
  FabricSpec spec = two_tier_spec();
  spec.tiers = 1;
  REQUIRE(
      refusal(spec, {pcie_servers(4)}) ==
      "one tier joins each rail alone, but nodes without a scale-up link cannot change rail: use 2 tiers");
  REQUIRE(refusal(spec, {servers(4)}) == "none");
}

TEST_CASE("Without rails all NICs of a node hang on one leaf, and any two meet there") {
  FabricSpec spec = planes_spec(1);
  const Fabric fabric(spec, {servers(8)});
  REQUIRE(way(fabric, 1, 8 + 6) == "nic-out 1, nic-in 14");  // 8 NICs a node: 4 nodes a leaf
  REQUIRE(way(fabric, 1, 4 * 8 + 6) == "nic-out 1, leaf-up 0, leaf-down 1, nic-in 38");
}

TEST_CASE("With 8 planes each NIC of a server is in its own plane, and planes meet inside nodes only") {
  const Fabric fabric(planes_spec(8), {servers(256)});
  REQUIRE(fabric.spec().tiers == 2);
  REQUIRE(way(fabric, 2, 8 + 2) == "nic-out 2, nic-in 10");
  REQUIRE(way(fabric, 2, 8 + 5) == "out 2, in 5, nic-out 5, nic-in 13");
  REQUIRE(way(fabric, 2, 32 * 8 + 2) == "nic-out 2, leaf-up 2, leaf-down 10, nic-in 258");
}

TEST_CASE("With 2 planes the rails of equal parity share leaves") {
  // 4 NICs of a node in each plane: a leaf of 32 ports takes 8 nodes. Rails 1 and 5 are both in plane 1.
  const Fabric fabric(planes_spec(2), {servers(16)});
  REQUIRE(way(fabric, 1, 8 + 5) == "nic-out 1, nic-in 13");
  REQUIRE(way(fabric, 1, 8 + 4) == "out 1, in 4, nic-out 4, nic-in 12");
  REQUIRE(way(fabric, 1, 8 * 8 + 5) == "nic-out 1, leaf-up 1, leaf-down 3, nic-in 69");
}

TEST_CASE("PCIe nodes forward between planes, for no switch joins them") {
  const Fabric fabric(planes_spec(8), {pcie_servers(4)});
  REQUIRE(way(fabric, 2, 8 + 5) == "out 2, in 5, nic-out 5, nic-in 13");
}

TEST_CASE("Three tiers add a pod and a core on the way between pods") {
  FabricSpec spec = two_tier_spec();
  spec.tiers = 3;
  spec.pod_leaves = 2;
  spec.core_oversubscription = 4;
  const Fabric fabric(spec, {servers(128)});  // 4 groups of 32 nodes: 2 pods
  REQUIRE(way(fabric, 0, 32 * 8) == "nic-out 0, leaf-up 0, leaf-down 8, nic-in 256");
  REQUIRE(fabric.distance(0, 32 * 8) == Distance::kSpine);
  REQUIRE(way(fabric, 0, 64 * 8) == "nic-out 0, leaf-up 0, pod-up 0, pod-down 1, leaf-down 16, nic-in 512");
  REQUIRE(fabric.distance(0, 64 * 8) == Distance::kCore);
  REQUIRE(fabric.latency(0, 64 * 8) == 4600_ns);  // 2,350 + 5 x 450
  // A pod holds 2 leaves of each of 8 rails, 32 NICs each, and a fourth of that goes up.
  REQUIRE(fabric.capacity({WireKind::kPodUp, 1}).value == Approx(2 * 8 * 32 * 46e9 / 4));
}

TEST_CASE("Tiers are as few as hold the devices") {
  REQUIRE(Fabric(two_tier_spec(), {servers(1)}).spec().tiers == 0);
  REQUIRE(Fabric(two_tier_spec(), {servers(32)}).spec().tiers == 1);
  REQUIRE(Fabric(two_tier_spec(), {servers(33)}).spec().tiers == 2);
  // 64 leaves of 8 rails are 8 groups of 32 nodes: 256 nodes in two tiers.
  REQUIRE(Fabric(two_tier_spec(), {servers(256)}).spec().tiers == 2);
  REQUIRE(Fabric(two_tier_spec(), {servers(257)}).spec().tiers == 3);
  // Eight planes: 64 leaves of 32 nodes in each, the 16,384 accelerators that the ISCA 2025 paper states.
  REQUIRE(Fabric(planes_spec(8), {servers(2048)}).spec().tiers == 2);
  REQUIRE(Fabric(planes_spec(8), {servers(2049)}).spec().tiers == 3);
}

TEST_CASE("Wires carry what their ends achieve, trunks the ports below over the oversubscription") {
  FabricSpec spec = two_tier_spec();
  spec.oversubscription = 2;
  const Fabric fabric(spec, {servers(64)});
  REQUIRE(fabric.capacity({WireKind::kScaleUpOut, 9}).value == 160e9);
  REQUIRE(fabric.capacity({WireKind::kNicIn, 9}).value == 46e9);
  REQUIRE(fabric.capacity({WireKind::kLeafUp, 15}).value == Approx(16 * 46e9));
  spec.leaf_ports = 48;  // all of them are wired, used or not
  REQUIRE(Fabric(spec, {servers(64)}).capacity({WireKind::kLeafUp, 15}).value == Approx(24 * 46e9));
}

TEST_CASE("A trunk that carries all the NICs below it can never bind") {
  const Fabric even(two_tier_spec(), {servers(256)});
  REQUIRE_FALSE(even.can_bind(WireKind::kLeafUp));
  REQUIRE_FALSE(even.can_bind(WireKind::kPodUp));
  REQUIRE(even.can_bind(WireKind::kNicOut));
  REQUIRE(even.can_bind(WireKind::kScaleUpIn));
  REQUIRE_FALSE(even.can_bind(WireKind::kScaleUpPair));

  FabricSpec spec = two_tier_spec();
  spec.oversubscription = 2;
  REQUIRE(Fabric(spec, {servers(64)}).can_bind(WireKind::kLeafDown));
  REQUIRE_FALSE(Fabric(spec, {servers(16)}).can_bind(WireKind::kLeafDown));  // one leaf, half full
}

TEST_CASE("Pod trunks bind when they carry less than the leaves below send up") {
  FabricSpec spec = two_tier_spec();
  spec.tiers = 3;
  spec.pod_leaves = 2;
  REQUIRE_FALSE(Fabric(spec, {servers(128)}).can_bind(WireKind::kPodUp));
  spec.core_oversubscription = 7;
  REQUIRE(Fabric(spec, {servers(128)}).can_bind(WireKind::kPodUp));
  REQUIRE_FALSE(Fabric(spec, {servers(64)}).can_bind(WireKind::kPodUp));  // one pod
}

TEST_CASE("In a full mesh each pair has a link of its own") {
  FabricPool pool = servers(2);
  pool.pair_rate = kLink / 7;
  const Fabric fabric(two_tier_spec(), {pool});
  REQUIRE(way(fabric, 9, 12) == "pair 76");  // device 9 x 8 + local index 4
  REQUIRE(fabric.capacity({WireKind::kScaleUpPair, 76}).value == Approx(160e9 / 7));
  REQUIRE(fabric.can_bind(WireKind::kScaleUpPair));
  REQUIRE_FALSE(fabric.can_bind(WireKind::kScaleUpOut));
  REQUIRE(way(fabric, 1, 8 + 6) == "pair 14, nic-out 6, nic-in 14");
}

TEST_CASE("Neighbours share a NIC where a node has fewer") {
  FabricPool pool = servers(2);
  pool.devices_per_nic = 2;
  const Fabric fabric(two_tier_spec(), {pool});
  // NIC i serves devices 2i and 2i+1 and hangs on rail i: 4 rails.
  REQUIRE(way(fabric, 3, 8 + 2) == "nic-out 2, nic-in 10");
  REQUIRE(way(fabric, 3, 8 + 4) == "out 3, in 4, nic-out 4, nic-in 12");
}

TEST_CASE("A super-node hangs several NICs on each rail") {
  FabricPool pool = servers(10);
  pool.devices_per_node = 72;
  pool.rails = 4;
  // 18 NICs a rail: a leaf of 32 ports takes one super-node; messages keep to the rail of the destination.
  const Fabric fabric(two_tier_spec(), {pool});
  REQUIRE(way(fabric, 1, 72 + 5) == "nic-out 1, leaf-up 1, leaf-down 5, nic-in 77");
  REQUIRE(way(fabric, 1, 72 + 6) == "out 1, in 6, nic-out 6, leaf-up 2, leaf-down 6, nic-in 78");
}

TEST_CASE("A super-node with more NICs on a rail than a leaf has ports spreads them evenly") {
  FabricPool pool = servers(2);
  pool.devices_per_node = 384;
  pool.rails = 8;
  // 48 NICs a rail: 24 on each of 2 leaves. Device 200 is NIC 25 of rail 0, so on the second leaf of its
  // node.
  const Fabric fabric(two_tier_spec(), {pool});
  REQUIRE(way(fabric, 0, 384) == "nic-out 0, leaf-up 0, leaf-down 16, nic-in 384");
  REQUIRE(way(fabric, 200, 384 + 200) == "nic-out 200, leaf-up 8, leaf-down 24, nic-in 584");
  REQUIRE(way(fabric, 184, 384 + 192) ==
          "nic-out 184, leaf-up 0, leaf-down 24, nic-in 576");  // NIC 23, then 24
  REQUIRE_FALSE(fabric.can_bind(WireKind::kLeafUp));
}

TEST_CASE("Pools of equal nodes fill leaves together, unlike ones start on new leaves") {
  const Fabric together(two_tier_spec(), {servers(4), servers(8)});
  REQUIRE(way(together, 0, 4 * 8) == "nic-out 0, nic-in 32");
  FabricPool slow = servers(8);
  slow.nic_rate = kNic / 2;
  const Fabric apart(two_tier_spec(), {servers(4), slow});
  REQUIRE(way(apart, 0, 4 * 8) == "nic-out 0, leaf-up 0, leaf-down 8, nic-in 32");
  REQUIRE(apart.capacity({WireKind::kNicIn, 32}).value == 23e9);
  REQUIRE(apart.capacity({WireKind::kLeafDown, 8}).value == Approx(32 * 23e9));
}

TEST_CASE("A pool that starts on a half-filled leaf ends on the next one") {
  const Fabric fabric(two_tier_spec(), {servers(20), servers(20)});
  REQUIRE(fabric.distance(0, 20 * 8) == Distance::kLeaf);   // node 20: still the first 32
  REQUIRE(fabric.distance(0, 32 * 8) == Distance::kSpine);  // node 32: the next leaf
  REQUIRE(fabric.distance(39 * 8, 32 * 8) == Distance::kLeaf);
}

TEST_CASE("A node with fewer rails is reached on one that both have") {
  FabricPool small = servers(2);
  small.devices_per_node = 4;
  const Fabric fabric(two_tier_spec(), {servers(2), small});
  // Devices 16-23 are the small nodes. From rail 1 to local 3: the sender has a device on rail 3.
  REQUIRE(way(fabric, 1, 16 + 3) == "out 1, in 3, nic-out 3, nic-in 19");
  // From local 2 of a small node to rail 6: it has none there, so the receiving node forwards from rail 2.
  REQUIRE(way(fabric, 16 + 2, 6) == "nic-out 18, nic-in 2, out 2, in 6");
}

TEST_CASE("Every message leaves at its sender, arrives at its receiver and enters what it left") {
  FabricSpec spec = two_tier_spec();
  spec.tiers = 3;
  spec.pod_leaves = 1;
  FabricPool small = servers(3);
  small.devices_per_node = 4;
  for (const Fabric& fabric :
       {Fabric(spec, {servers(70), small}), Fabric(planes_spec(4), {servers(70), small})}) {
    for (int from = 0; from < fabric.num_devices(); from += 37) {
      for (int to = 0; to < fabric.num_devices(); ++to) {
        std::vector<WireId> wires;
        fabric.route(from, to, wires);
        int balance = 0;
        for (const WireId wire : wires) {
          REQUIRE(fabric.capacity(wire).value > 0);
          const bool out = wire.kind == WireKind::kScaleUpOut || wire.kind == WireKind::kNicOut ||
                           wire.kind == WireKind::kLeafUp || wire.kind == WireKind::kPodUp;
          balance += out ? 1 : -1;
        }
        REQUIRE(balance == 0);
        REQUIRE(wires.empty() == (from == to));
        REQUIRE(fabric.distance(from, to) == fabric.distance(to, from));
        REQUIRE(fabric.latency(from, to) == fabric.latency(to, from));
        if (from != to) {
          REQUIRE((wires.front().kind != WireKind::kScaleUpOut || wires.front().index == from));
          REQUIRE((wires.back().kind != WireKind::kScaleUpIn || wires.back().index == to));
        }
      }
    }
  }
}

TEST_CASE("Impossible networks are refused with what does not fit") {
  FabricSpec none = two_tier_spec();
  none.type = "single-node";
  none.tiers = 0;
  REQUIRE(refusal(none, {servers(4)}) == "a \"single-node\" fabric joins no nodes, but the cluster has 4");
  REQUIRE(refusal(none, {servers(1)}) == "none");
  REQUIRE(refusal(two_tier_spec(), {}) == "the cluster has no pool of nodes");

  FabricSpec two = two_tier_spec();
  two.tiers = 2;
  REQUIRE(refusal(two, {servers(257)}) ==
          "two tiers: 257 nodes need 72 leaves in a plane, but a spine switch of 64 ports joins 64: use 3 "
          "tiers, more "
          "planes or larger switches");
  FabricSpec one = two_tier_spec();
  one.tiers = 1;
  REQUIRE(refusal(one, {servers(40)}) ==
          "one tier joins the nodes of one leaf, but 40 nodes need 2 leaves of 32 ports: use more tiers or "
          "larger leaves");
  // 4 leaves of each of 8 rails under a pod of 32 leaves: 128 nodes a pod, 64 pods.
  REQUIRE(refusal(two_tier_spec(), {servers(64 * 128)}) == "none");
  REQUIRE(refusal(two_tier_spec(), {servers(64 * 128 + 1)}) ==
          "three tiers: 8193 nodes need 65 pods, but a core switch of 64 ports joins 64: use more planes or "
          "larger switches");
}

TEST_CASE("Pods with more leaves than a spine has ports, and clusters beyond counting, are refused") {
  FabricSpec spec = two_tier_spec();
  spec.tiers = 3;
  spec.pod_leaves = 16;
  REQUIRE(refusal(spec, {servers(600)}) ==
          "128 leaves of a plane under one pod, but a spine switch of 64 ports joins 64");
  REQUIRE(refusal(two_tier_spec(), {servers(1 << 20), servers(1 << 20), servers(1 << 20)}) ==
          "25165824 devices: expected at most 16777216");
}

TEST_CASE("Rails and planes that the nodes cannot fill are refused") {
  REQUIRE(refusal(planes_spec(16), {servers(4)}) ==
          "16 planes, but a node has 8 NICs: the rest would hang on nothing");
  FabricSpec spec = two_tier_spec();
  spec.planes = 3;
  REQUIRE(refusal(spec, {servers(4)}) == "8 rails cannot be spread evenly over 3 planes");
  FabricPool unwired = servers(2);
  unwired.nic_rate = {};
  REQUIRE(refusal(two_tier_spec(), {unwired}) ==
          "the nodes of pool 0 have no NIC, so nothing can reach them");
  FabricSpec bare = planes_spec(1);
  bare.leaf_ports = 0;
  REQUIRE(refusal(bare, {servers(2)}) == "leaves of 0 ports below switches of 64: expected at least 1");
  FabricPool loose = servers(2);
  loose.link_rate = {};
  REQUIRE(refusal(two_tier_spec(), {loose}) == "the 8 devices of a node of pool 0 are joined by nothing");
}

TEST_CASE("A hundred thousand devices are routed by arithmetic") {
  FabricSpec spec = planes_spec(8);
  const Fabric fabric(spec, {servers(12500)});
  REQUIRE(fabric.num_devices() == 100000);
  REQUIRE(fabric.spec().tiers == 3);
  REQUIRE(fabric.node_of(99999) == 12499);
  // Plane 7, group 12499 / 32 = 390 of leaves, 32 groups a pod: pod 12 of the plane.
  REQUIRE(way(fabric, 7, 99999) ==
          "nic-out 7, leaf-up 7, pod-up 7, pod-down 103, leaf-down 3127, nic-in 99999");
}
