// Closed forms of collectives on an idle network.
#include <catch2/catch.hpp>

#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

// Driver and detail; the native network needs SimGrid, one engine a process, so it comes last and once.
std::vector<SimOptions> details() {
  std::vector<SimOptions> all = {{NetworkDetail::kAlphaBeta, Driver::kPlain},
                                 {NetworkDetail::kFluid, Driver::kPlain}};
  if (has_simgrid()) all.push_back({NetworkDetail::kNative, Driver::kSimGrid});
  return all;
}

}  // namespace

// n - 1 steps of reduce-scatter and n - 1 of all-gather; in each a rank passes S/n to its neighbour:
// T = 2 (n - 1) (alpha + S / (n B)).
TEST_CASE("a ring all-reduce inside a node takes 2(n-1)/n S/B + 2(n-1) alpha") {
  const double expected = 2 * 7.0 / 8 * 800 * kMB / 100e9 + 2 * 7 * 1e-6;
  for (const SimOptions& options : details()) {
    for (const bool fold : {true, false}) {
      if (options.detail == NetworkDetail::kNative && fold) continue;
      const Op op = communication_op(OpKind::kAllReduce, 800 * kMB);
      REQUIRE(seconds_of({}, {.ranks = 8, .fold = fold}, op, options) == Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("a ring all-reduce over one rail takes 2(n-1)/n S/B + 2(n-1) alpha") {
  // One device a node: all 16 hops cross the leaf, alpha = 2 us + one switch 0.5 us.
  const World world{.nodes = 16, .per_node = 1};
  const double expected = 2 * 15.0 / 16 * 160 * kMB / 50e9 + 2 * 15 * 2.5e-6;
  for (const SimOptions& options : details()) {
    for (const bool fold : {true, false}) {
      if (options.detail == NetworkDetail::kNative && !fold) continue;
      const Op op = communication_op(OpKind::kAllReduce, 160 * kMB);
      REQUIRE(seconds_of(world, {.ranks = 16, .fold = fold}, op, options) == Approx(expected).epsilon(1e-5));
    }
  }
}

// k = 8 rings side by side, each over another rail with an eighth of the bytes. Over its NIC a rank sends an
// eighth, to its neighbour in the node the rest: the NIC needs S' / 8 / 50e9, the scale-up link 7 S' / 8 /
// 100e9 with S' = 2 (n - 1)/n S. The link is the slower one. Of 8 hops 7 are inside the node: alpha = (7 * 1
// us + 2.5 us) / 8.
TEST_CASE("a ring over many nodes uses all rails") {
  const World world{.nodes = 4};
  const double sent = 2 * 31.0 / 32 * 320 * kMB;
  const double expected = std::max(sent * 7 / 8 / 100e9, sent / 8 / 50e9) + 2 * 31 * (7 * 1e-6 + 2.5e-6) / 8;
  for (const bool fold : {true, false}) {
    const Op op = communication_op(OpKind::kAllReduce, 320 * kMB);
    REQUIRE(seconds_of(world, {.ranks = 32, .fold = fold}, op) == Approx(expected).epsilon(1e-5));
  }
}

// Nodes of 8 and of 4: four rings, each over another rail with a quarter of the bytes, through all 12 ranks.
TEST_CASE("a ring over nodes with unlike numbers of ranks uses as many rails as the smallest has") {
  World world{.nodes = 2};
  world.link = 1e15, world.link_latency = {0};
  const Op op = communication_op(OpKind::kAllReduce, 480 * kMB, Algorithm::kRing);
  const double sent = 2 * 11.0 / 12 * 480 * kMB;
  for (const bool fold : {true, false})
    CHECK(seconds_of(world, {.ranks = 12, .fold = fold}, op) == Approx(sent / 4 / 50e9).epsilon(1e-2));
}

TEST_CASE("reduce-scatter and all-gather by ring each take half of an all-reduce") {
  for (const OpKind kind : {OpKind::kReduceScatter, OpKind::kAllGather}) {
    const double whole =
        seconds_of({}, {.ranks = 8, .fold = true}, communication_op(OpKind::kAllReduce, 80 * kMB));
    const double half = seconds_of({}, {.ranks = 8, .fold = true}, communication_op(kind, 80 * kMB));
    REQUIRE(2 * half == Approx(whole).epsilon(1e-5));
  }
}

// Each of n ranks sends S/n to each of the others. One device a node, so that all goes over the NICs:
// T = (n - 1)/n S/B + alpha.
TEST_CASE("an all-to-all takes (n-1)/n S/B + alpha") {
  const World world{.nodes = 16, .per_node = 1};
  const double expected = 15.0 / 16 * 160 * kMB / 50e9 + 2.5e-6;
  for (const SimOptions& options : details()) {
    const Op op = communication_op(OpKind::kAllToAll, 160 * kMB, Algorithm::kDirect);
    REQUIRE(seconds_of(world, {.ranks = 16, .fold = true}, op, options) == Approx(expected).epsilon(1e-4));
  }
}

// Two nodes of 4. A rank sends S/8 to each of 4 ranks in the other node, over the NIC of the receiver's rail:
// each NIC passes 4 messages of S/8. The scale-up link passes 3 messages to ranks of the node and 3 to reach
// the other rails' NICs: 6 S/8.
TEST_CASE("messages of an all-to-all change rail inside the sending node") {
  const World world{.nodes = 2, .per_node = 4, .link = 60e9, .nic = 50e9};
  const double expected = std::max(4 * 10 * kMB / 50e9, 6 * 10 * kMB / 60e9);
  for (const bool fold : {true, false}) {
    const Op op = communication_op(OpKind::kAllToAll, 80 * kMB, Algorithm::kDirect);
    // Latency: the longest way, over the link and then the network.
    REQUIRE(seconds_of(world, {.ranks = 8, .fold = fold}, op) == Approx(expected + 3.5e-6).epsilon(1e-5));
  }
}

// Uplinks with a quarter of the downlinks' capacity. 8 nodes of one device, 4 under each leaf. Between two
// leaves a rank sends 4 messages of S/8 up; four ranks share an uplink of 4 * 50e9 / 4 = 50e9.
TEST_CASE("an oversubscribed leaf binds an all-to-all") {
  const World world{.nodes = 8, .per_node = 1, .leaf_ports = 4, .oversubscription = 4};
  const double expected = 16 * 10 * kMB / 50e9 + 2e-6 + 3 * 0.5e-6;
  for (const bool fold : {true, false}) {
    const Op op = communication_op(OpKind::kAllToAll, 80 * kMB, Algorithm::kDirect);
    REQUIRE(seconds_of(world, {.ranks = 8, .fold = fold}, op) == Approx(expected).epsilon(1e-5));
  }
}

// Step 1, inside the nodes: 7/8 S over the link. Step 2, each rail: 2 (N - 1)/N of S/8 over the NIC. Step 3
// as step 1.
TEST_CASE("a hierarchical all-reduce reduces in the node, then along the rails, then gathers in the node") {
  const World world{.nodes = 4};
  const double bytes = 320 * kMB;
  const double inside = 7.0 / 8 * bytes / 100e9 + 7 * 1e-6;
  const double between = 2 * 3.0 / 4 * bytes / 8 / 50e9 + 2 * 3 * 2.5e-6;
  const Op op = communication_op(OpKind::kAllReduce, bytes, Algorithm::kHierarchical);
  for (const bool fold : {true, false}) {
    REQUIRE(seconds_of(world, {.ranks = 32, .fold = fold}, op) == Approx(2 * inside + between).epsilon(1e-5));
  }
}

// The same where each of the 7 peers in a node has a link of 100/7 GB/s: an eighth of S over each at once.
TEST_CASE("a hierarchical all-reduce uses all links of a full mesh") {
  const World world{.nodes = 4, .scale_up = ScaleUp::kFullMesh};
  const double bytes = 320 * kMB;
  const double inside = bytes / 8 / (100e9 / 7) + 1e-6;
  const double between = 2 * 3.0 / 4 * bytes / 8 / 50e9 + 2 * 3 * 2.5e-6;
  const Op op = communication_op(OpKind::kAllReduce, bytes, Algorithm::kHierarchical);
  for (const bool fold : {true, false}) {
    REQUIRE(seconds_of(world, {.ranks = 32, .fold = fold}, op) == Approx(2 * inside + between).epsilon(1e-5));
  }
}

TEST_CASE("the automatic choice is never slower than a named algorithm that it may choose") {
  const World world{.nodes = 4};
  for (const double bytes : {1e3, 1e5, 1e7, 1e9}) {
    const auto time = [&](Algorithm algorithm) {
      return seconds_of(world, {.ranks = 32, .fold = true},
                        communication_op(OpKind::kAllReduce, bytes, algorithm));
    };
    const double automatic = time(Algorithm::kAuto);
    REQUIRE(automatic <= time(Algorithm::kRing));
    REQUIRE(automatic <= time(Algorithm::kTree));
    REQUIRE(automatic <= time(Algorithm::kHierarchical));
  }
}

// With 1 kB latency decides, and a tree is log2(32) deep where the ring has 62 steps; with 1 GB the bytes do,
// and two trees send twice what the ring sends.
TEST_CASE("trees win for small all-reduces and rings for large ones") {
  const World world{.nodes = 32, .per_node = 1};
  const auto time = [&](Algorithm algorithm, double bytes) {
    return seconds_of(world, {.ranks = 32, .fold = true},
                      communication_op(OpKind::kAllReduce, bytes, algorithm));
  };
  REQUIRE(time(Algorithm::kTree, 1e3) < time(Algorithm::kRing, 1e3) / 4);
  REQUIRE(time(Algorithm::kRing, 1e9) < time(Algorithm::kTree, 1e9));
}

// A pipeline over h = n - 1 hops in m chunks: (m + h - 1) (alpha + S / (m B)), which tends to S/B for large S
// and is never less.
TEST_CASE("a broadcast down a pipeline of large buffers takes little more than S/B") {
  const World world{.nodes = 16, .per_node = 1};
  const double bytes = 4e9, least = bytes / 50e9;
  const double time =
      seconds_of(world, {.ranks = 16}, communication_op(OpKind::kBroadcast, bytes, Algorithm::kRing));
  REQUIRE(time > least);
  REQUIRE(time < 1.05 * least);
}

TEST_CASE("an algorithm that a collective does not have is refused by name") {
  const Op op = communication_op(OpKind::kAllToAll, 1e6, Algorithm::kTree);
  REQUIRE_THROWS_WITH(seconds_of({}, {.ranks = 8, .fold = true}, op), "all_to_all has no algorithm \"tree\"");
}

TEST_CASE("a collective in a group of one takes no time") {
  REQUIRE(seconds_of({}, {.ranks = 1}, communication_op(OpKind::kAllReduce, 1e6)) == 0);
}

// In a full mesh each of the 7 links of a device carries a seventh of its rate; a ring uses one of them.
TEST_CASE("a ring in a full mesh uses one link of each device") {
  const World world{.scale_up = ScaleUp::kFullMesh};
  const double expected = 2 * 7.0 / 8 * 80 * kMB / (100e9 / 7) + 2 * 7 * 1e-6;
  for (const bool fold : {true, false}) {
    const Op op = communication_op(OpKind::kAllReduce, 80 * kMB);
    REQUIRE(seconds_of(world, {.ranks = 8, .fold = fold}, op) == Approx(expected).epsilon(1e-5));
  }
}
