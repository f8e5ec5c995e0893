// How messages find their paths, against closed forms: one flow alone, collisions, hashing against balls in
// bins, many queue pairs, what adaptive routing levels, ways around broken parts.
#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/network/wire_meter.h"
#include "sim/traffic/flow_paths.h"
#include "tests/laws/two_tiers.h"

using namespace moebius;

namespace {

struct RoutedRun {
  double seconds = 0;
  NetworkUse use;

  const TierUse& tier(std::string_view name) const {
    for (const TierUse& tier : use.tiers)
      if (tier.tier == name) return tier;
    throw std::logic_error("no such tier");
  }
};

// Every rank does the op once.
RoutedRun run(const TwoTiers& net, int ranks, Op op, SimOptions options = {}) {
  const Cluster cluster = two_tier_cluster(net);
  const Layout layout = make_layout({.ranks = ranks});
  WireMeter meter;
  options.meter = &meter;
  const FixedCost cost({}, cluster.pools.front().accelerator.cores);
  Recorder recorder(layout, {});
  const auto executor = make_sim_executor(cluster, layout, {&cost}, recorder, options);
  std::int32_t sequence = 0;
  for (Submission submission : on_all_classes(layout, make_fragment({{op}}))) {
    submission.sequence = sequence++;
    recorder.submitted(submission);
    executor->submit(submission);
  }
  const Time end = executor->finish();
  return {end.seconds(), meter.use()};
}

SimOptions seeded(std::uint64_t seed) {
  return {.seed = seed};
}

// Ranks of both leaves; rank i of the first leaf sends to rank i of the second.
std::vector<WireId> way(FlowPaths& paths, int from, int to) {
  std::vector<FlowPath> flows;
  std::vector<WireId> wires;
  paths.choose(from, to, RailChange::kInNode, flows);
  for (const FlowPath& flow : flows) paths.wires(from, to, flow, wires);
  return wires;
}

int uplink(FlowPaths& paths, int from, int to, int uplinks) {
  for (const WireId wire : way(paths, from, to))
    if (wire.kind == WireKind::kLeafUpPort) return wire.index % uplinks;
  return -1;
}

}  // namespace

// Two ranks, one on each leaf: leaves of one node have one uplink. 1 MB at 50 GB/s is 20 us.
TEST_CASE("one hashed flow takes as long as the plain law says") {
  const RoutedRun result = run({.leaves = 2, .ports = 1}, 2, all_to_all(2e6));
  REQUIRE(result.seconds == Approx(kBetweenLeaves + 1e6 / kNicRate).epsilon(1e-6));
  REQUIRE(result.tier("leaf up").imbalance() == Approx(1));
}

// Three nodes a leaf share one uplink of the NICs' speed (3:1), so that the 3 x 3 messages from leaf to leaf
// all collide: each leaf sends 9 messages of 1 MB over a port of 50 GB/s. Inside the leaf nothing is slower.
TEST_CASE("flows that collide on a port share it") {
  Cluster cluster = two_tier_cluster({.leaves = 2, .ports = 3});
  FabricSpec spec = cluster.fabric.spec();
  spec.oversubscription = 3;
  spec.leaf_uplinks = 1;
  const std::vector<FabricPool> parts = {part_of_fabric(cluster.pools.front(), spec)};
  const Cluster narrow{cluster.pools, Fabric(spec, parts)};
  const Layout layout = make_layout({.ranks = 6});
  const WorldRun outcome =
      simulate({narrow, layout, on_all_classes(layout, make_fragment({{all_to_all(6e6)}}))});
  REQUIRE(outcome.seconds() == Approx(kBetweenLeaves + 9e6 / kNicRate).epsilon(1e-4));
}

// 8 flows over 8 uplinks: the mean over seeds of the most that one port gets is that of balls thrown into
// bins by a generator of another kind.
TEST_CASE("hashing loads ports as balls fall into bins") {
  constexpr int kBins = 8, kSeeds = 400;
  double sum = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Cluster cluster = two_tier_cluster({.leaves = 2, .ports = kBins});
    FlowPaths paths(cluster, seed);
    std::vector<int> load(kBins, 0);
    for (int i = 0; i < kBins; ++i) ++load[uplink(paths, i, kBins + i, kBins)];
    sum += *std::max_element(load.begin(), load.end());
  }
  double expected = 0;
  std::uint64_t state = 12345;
  for (int draw = 0; draw < 200000; ++draw) {
    std::vector<int> load(kBins, 0);
    for (int i = 0; i < kBins; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      ++load[state >> 61];
    }
    expected += *std::max_element(load.begin(), load.end()) / 200000.0;
  }
  // The maximum of one draw deviates by about 0.8, the mean of 400 by 0.04: four deviations.
  REQUIRE(sum / kSeeds == Approx(expected).margin(0.16));
}

// 8 senders x 8 receivers of 8 MB over the 4 uplinks of a leaf: 64 flows put 16 on a port and at most about
// 20, 64 x 256 flows put 4,096 on a port and at most two deviations of 55 more.
TEST_CASE("more queue pairs bring hashing nearer to spraying") {
  const Op op = all_to_all(16 * 8e6);
  const double sprayed = run({.routing = Routing::kSpray, .oversubscription = 2}, 16, op).seconds;
  REQUIRE(sprayed == Approx(kBetweenLeaves + 64 * 8e6 / 4 / kNicRate).epsilon(1e-6));
  double before = 1e9;
  for (const int queue_pairs : {1, 16, 256}) {
    double mean = 0;
    for (int seed = 0; seed < 5; ++seed)
      mean += run({.queue_pairs = queue_pairs, .oversubscription = 2}, 16, op, seeded(seed)).seconds / 5;
    REQUIRE(mean < before);
    before = mean;
  }
  REQUIRE(before == Approx(sprayed).epsilon(0.03));
}

TEST_CASE("adaptive routing is spraying where everything is whole and alike") {
  const double sprayed = run({.routing = Routing::kSpray}, 16, all_to_all(1e8)).seconds;
  REQUIRE(run({.routing = Routing::kAdaptive}, 16, all_to_all(1e8)).seconds == Approx(sprayed));
}

TEST_CASE("the same seed picks the same paths and another seed others") {
  const TwoTiers net{.leaves = 4, .ports = 8};
  const RoutedRun once = run(net, 32, all_to_all(1e8), seeded(7)),
                  again = run(net, 32, all_to_all(1e8), seeded(7));
  REQUIRE(once.seconds == again.seconds);
  REQUIRE(once.seconds != run(net, 32, all_to_all(1e8), seeded(8)).seconds);
}

TEST_CASE("ports carry together what NICs send whatever the routing") {
  for (const Routing routing : {Routing::kSpray, Routing::kEcmp, Routing::kAdaptive, Routing::kStatic}) {
    const RoutedRun result =
        run({.routing = routing, .damaged = {{FabricPart::kLeafUplink, 0, 3}}}, 16, all_to_all(16e6));
    // Each of 16 ranks sends 1 MB to each of 15 others, 8 of them behind the other leaf.
    REQUIRE(result.tier("NIC out").bytes == Approx(16 * 15e6));
    REQUIRE(result.tier("NIC in").bytes == Approx(16 * 15e6));
    REQUIRE(result.tier("leaf up").bytes == Approx(16 * 8e6));
    REQUIRE(result.tier("leaf down").bytes == Approx(16 * 8e6));
  }
}

// Nodes of four on leaves of one rail each: 3 of 4 messages to other nodes are for another rail and climb,
// though no uplink is short of room. What is broken or how ports are picked changes nothing of that.
TEST_CASE("messages that change rail at a spine climb whatever the routing") {
  const TwoTiers sprayed{.leaves = 2, .ports = 2, .per_node = 4, .routing = Routing::kSpray};
  const double climbed = run(sprayed, 16, all_to_all(16e6)).tier("leaf up").bytes;
  // 16 ranks, 1 MB to each of 12 in other nodes; only the one of its own rail behind its own leaf stays
  // below.
  CHECK(climbed == Approx(16 * 11e6));
  for (const Routing routing : {Routing::kEcmp, Routing::kAdaptive, Routing::kStatic}) {
    TwoTiers net = sprayed;
    net.routing = routing;
    CHECK(run(net, 16, all_to_all(16e6)).tier("leaf up").bytes == Approx(climbed));
  }
  TwoTiers slowed = sprayed;
  slowed.damaged = {{FabricPart::kNic, 0, 0, 0.999}};
  CHECK(run(slowed, 16, all_to_all(16e6)).tier("leaf up").bytes == Approx(climbed));
}

TEST_CASE("static routing gives each receiver of a leaf a port of its own") {
  const Cluster cluster = two_tier_cluster({.leaves = 2, .ports = 8, .routing = Routing::kStatic});
  FlowPaths paths(cluster, 1);
  std::vector<bool> taken(8, false);
  for (int i = 0; i < 8; ++i) {
    const int u = uplink(paths, i, 8 + i, 8);
    REQUIRE_FALSE(taken[u]);
    taken[u] = true;
  }
}

// Spines of 4 ports join two leaves by two uplinks of each: spine 1 stands for uplinks 2 and 3.
TEST_CASE("no routing takes a broken uplink or a broken spine") {
  for (const Routing routing : {Routing::kSpray, Routing::kEcmp, Routing::kAdaptive, Routing::kStatic}) {
    const Cluster cluster =
        two_tier_cluster({.routing = routing,
                          .queue_pairs = 64,
                          .damaged = {{FabricPart::kLeafUplink, 1, 5}, {FabricPart::kSpine, 1}},
                          .spine_ports = 4});
    FlowPaths paths(cluster, 1);
    for (int from = 0; from < 8; ++from) {
      for (const WireId wire : way(paths, from, 15 - from)) {
        if (wire.kind != WireKind::kLeafUpPort && wire.kind != WireKind::kLeafDownPort) continue;
        REQUIRE(wire.index % 8 != 5);
        REQUIRE(wire.index % 8 / 2 != 1);
      }
    }
  }
}

// Six of the 8 uplinks of the first leaf are gone: 8 x 8 messages of 1 MB go over 2 ports each way.
TEST_CASE("adaptive routing fills the ports that are left alike") {
  std::vector<PartHealth> damaged;
  for (int u = 0; u < 6; ++u) damaged.push_back({FabricPart::kLeafUplink, 0, u});
  const RoutedRun result = run({.routing = Routing::kAdaptive, .damaged = damaged}, 16, all_to_all(16e6));
  REQUIRE(result.seconds == Approx(kBetweenLeaves + 64e6 / 2 / kNicRate).epsilon(1e-4));
}

// Three leaves of 4; leaf 2 has lost the links to spines 0 and 1. Leaf 0 sends B to leaf 1 and B to leaf 2:
// what goes to leaf 2 fills uplinks 2 and 3, what goes to leaf 1 the others, B / 2 on each of the four.
// Equal shares would put 3/4 B on uplinks 2 and 3.
TEST_CASE("adaptive routing leaves ports to those who have no others") {
  const std::vector<PartHealth> damaged = {{FabricPart::kLeafUplink, 2, 0}, {FabricPart::kLeafUplink, 2, 1}};
  const TwoTiers net{.leaves = 3, .ports = 4, .routing = Routing::kAdaptive, .damaged = damaged};
  const RoutedRun adaptive = run(net, 12, all_to_all(12e6));
  TwoTiers spray = net;
  spray.routing = Routing::kSpray;
  const RoutedRun sprayed = run(spray, 12, all_to_all(12e6));
  // Leaf 2 itself: 8 x 4 MB over 2 ports = 320 us either way; on leaf 0 the ports differ only under spray.
  REQUIRE(adaptive.seconds == Approx(kBetweenLeaves + 16e6 / kNicRate).epsilon(1e-3));
  REQUIRE(sprayed.seconds >= adaptive.seconds * (1 - 1e-9));
  REQUIRE(adaptive.tier("leaf up").longest <= sprayed.tier("leaf up").longest * (1 + 1e-9));
}

// Both leaves of rail 0 stand, but the first has no uplink: what its NICs would send to the other leaf goes
// over the scale-up link to rail 1 of the node, and back on the other side.
TEST_CASE("a leaf without uplinks is left over another rail of the node") {
  std::vector<PartHealth> damaged;
  for (int u = 0; u < 2; ++u) damaged.push_back({FabricPart::kLeafUplink, 0, u});
  const Cluster cluster = two_tier_cluster({.ports = 2, .per_node = 2, .damaged = damaged});
  FlowPaths paths(cluster, 1);
  // Device 0 is rail 0 of node 0, device 4 rail 0 of node 2 behind the other leaf; leaf 1 is rail 1's.
  const std::vector<WireId> wires = way(paths, 0, 4);
  REQUIRE(wires.size() == 8);
  REQUIRE(wires[0] == WireId{WireKind::kScaleUpOut, 0});
  REQUIRE(wires[1] == WireId{WireKind::kScaleUpIn, 1});
  REQUIRE(wires[2] == WireId{WireKind::kNicOut, 1});
  REQUIRE(wires[5] == WireId{WireKind::kNicIn, 5});
  REQUIRE(wires[7] == WireId{WireKind::kScaleUpIn, 4});
}

TEST_CASE("where no way is left the run fails with one sentence") {
  const TwoTiers net{.leaves = 2, .ports = 2, .damaged = {{FabricPart::kLeaf, 1}}};
  REQUIRE_THROWS_WITH(
      run(net, 4, all_to_all(1e6)),
      "no way is left from device 0 (node 0) to device 2 (node 2): too much of the network is "
      "broken");
}

TEST_CASE("a slowed link carries its share") {
  // One uplink each way between two leaves of one node, at a quarter of its speed.
  const TwoTiers net{.leaves = 2, .ports = 1, .damaged = {{FabricPart::kLeafUplink, 0, 0, 0.25}}};
  REQUIRE(run(net, 2, all_to_all(2e6)).seconds == Approx(kBetweenLeaves + 4 * 1e6 / kNicRate).epsilon(1e-6));
}

// Messages of equal latency: SimGrid shares a wire by the inverse of latencies.
TEST_CASE("fluid and native send hashed flows over the same ports") {
  if (!has_simgrid()) {
    WARN("skipped: this build has no SimGrid");
    return;
  }
  const TwoTiers net{.queue_pairs = 2, .oversubscription = 2, .hop = Time{0}};
  const Op op = all_to_all(16 * 8e6);
  SimOptions native{.detail = NetworkDetail::kNative, .driver = Driver::kSimGrid};
  native.seed = 3;
  REQUIRE(run(net, 16, op, native).seconds == Approx(run(net, 16, op, seeded(3)).seconds).epsilon(0.02));
}

// Four nodes of one device, each with three messages of 2 us for its NIC: 6 us, and 1 byte to each.
TEST_CASE("messages that NICs post are a tier of their own and no part of the bisection") {
  const TwoTiers net{.leaves = 2, .ports = 2, .routing = Routing::kSpray, .message = Time{2'000}};
  const RoutedRun result = run(net, 4, all_to_all(4));
  const TierUse& posting = result.tier("NIC posting");
  REQUIRE(posting.counts_messages);
  REQUIRE(posting.bytes == Approx(12));
  REQUIRE(posting.ports == 4);
  REQUIRE(posting.longest == Approx(6e-6));
  REQUIRE(result.use.binding()->tier == "NIC posting");
  REQUIRE(result.use.narrowest()->in_network);
}

// Two ports of a NIC are one place to post to: three messages of 2 us each, however their paths are chosen.
TEST_CASE("messages cost a NIC of two ports what they cost one of one port whatever the routing") {
  for (const int ports : {1, 2}) {
    for (const Routing routing : {Routing::kSpray, Routing::kEcmp, Routing::kAdaptive, Routing::kStatic}) {
      TwoTiers net{.leaves = 2, .ports = 2, .routing = routing, .message = Time{2'000}, .nic_ports = ports};
      for (const double left : {1.0, 0.5}) {
        net.damaged = {{FabricPart::kNic, 0, 0, left}};
        const RoutedRun result = run(net, 4, all_to_all(4));
        CAPTURE(ports, static_cast<int>(routing), left);
        CHECK(result.tier("NIC posting").bytes == Approx(12));
        CHECK(result.tier("NIC posting").longest == Approx(6e-6));
      }
    }
  }
}

// Five nodes of four devices a leaf; the NIC of device 0 is dead. What it had to send to rail 0 of another
// node goes over one other NIC, as a library moves it: never over more than it had. The nodes behind the
// other leaf are spread over the three.
TEST_CASE("a message of a dead NIC goes by one other rail, and those to other nodes by the others") {
  for (const Routing routing : {Routing::kSpray, Routing::kEcmp, Routing::kAdaptive, Routing::kStatic}) {
    const Cluster cluster = two_tier_cluster({.ports = 5,
                                              .per_node = 4,
                                              .routing = routing,
                                              .queue_pairs = 16,
                                              .damaged = {{FabricPart::kNic, 0, 0, 0}}});
    FlowPaths paths(cluster, 1);
    std::vector<int> messages(4, 0);
    for (int node = 5; node < 8; ++node) {
      std::vector<FlowPath> flows;
      paths.choose(0, 4 * node, RailChange::kInNode, flows);
      double sum = 0;
      for (const FlowPath& flow : flows) {
        CHECK(flow.gates.sender == flows.front().gates.sender);
        sum += flow.share;
      }
      CHECK(sum == Approx(1));
      ++messages[flows.front().gates.sender];
    }
    CHECK(messages == std::vector<int>{0, 1, 1, 1});
  }
}
