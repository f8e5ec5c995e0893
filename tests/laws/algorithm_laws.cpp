// Closed forms of the collective library beyond rings: trees, switches that reduce, rails, channels, unequal
// parts; and relations that hold for every algorithm.
#include <catch2/catch.hpp>

#include <cmath>

#include "tests/laws/small_world.h"
#include "workloads/schedule/algorithms.h"

using namespace moebius;

namespace {

double seconds_of(const World& world, int ranks, OpKind kind, Algorithm algorithm, double bytes) {
  return seconds_of(world, {.ranks = ranks, .fold = true}, communication_op(kind, bytes, algorithm));
}

}  // namespace

// Two trees over 8 nodes, each 3 deep: up and down are h = 6 hops of alpha = 2.5 us. The busiest stop passes
// half the buffer to its parent and to two children, and up from the leaf that it is in the other tree: beta
// = 2 S/B. m chunks take (m + h - 1)(alpha + beta/m).
TEST_CASE("an all-reduce by two trees takes 2 S/B and the chunks that fill 2 log n hops") {
  const World world{.nodes = 8, .per_node = 1};
  const double bytes = 100 * kMB, beta = 2 * bytes / 50e9, alpha = 2.5e-6;
  const double m = std::floor(std::sqrt(5 * beta / alpha));
  REQUIRE(seconds_of(world, 8, OpKind::kAllReduce, Algorithm::kTree, bytes) ==
          Approx((m + 5) * (alpha + beta / m)).epsilon(1e-5));
}

// Two messages of half the buffer each pass every stop but the root of a broadcast's tree over 7 nodes.
TEST_CASE("a broadcast down a tree has the root send twice and takes 2 S/B in all") {
  const World world{.nodes = 7, .per_node = 1};
  const double bytes = 400 * kMB, beta = 2 * bytes / 50e9, alpha = 2.5e-6;
  const double m = std::floor(std::sqrt(beta / alpha));  // 2 hops deep
  REQUIRE(seconds_of(world, 7, OpKind::kBroadcast, Algorithm::kTree, bytes) ==
          Approx((m + 1) * (alpha + beta / m)).epsilon(1e-5));
}

// A member gives the switch all of its buffer and stores an eighth of the sum; it takes an eighth and the
// sum: (n + 1)/n S each way, at once. Two crossings.
TEST_CASE("an all-reduce in the switch takes (n+1)/n S/B + 2 alpha") {
  const World world{.reduces = true};
  for (const bool fold : {true, false}) {
    const Op op = communication_op(OpKind::kAllReduce, 800 * kMB, Algorithm::kInSwitch);
    REQUIRE(seconds_of(world, {.ranks = 8, .fold = fold}, op) ==
            Approx(9.0 / 8 * 800 * kMB / 100e9 + 2e-6).epsilon(1e-5));
  }
  for (const OpKind half : {OpKind::kReduceScatter, OpKind::kAllGather})
    REQUIRE(seconds_of(world, 8, half, Algorithm::kInSwitch, 800 * kMB) ==
            Approx(800 * kMB / 100e9 + 1e-6).epsilon(1e-5));
}

TEST_CASE("an all-reduce in the network's switches takes S/B and one way up and down") {
  const World world{.nodes = 16, .per_node = 1, .network_reduces = true};
  REQUIRE(seconds_of(world, 16, OpKind::kAllReduce, Algorithm::kInSwitch, 160 * kMB) ==
          Approx(160 * kMB / 50e9 + 2.5e-6).epsilon(1e-5));
}

// In the node everyone gives S and takes an eighth of it; every rail carries that eighth, in the network's
// switches or around a ring of 4; then the node gathers.
TEST_CASE("in several nodes the switches of nodes and of the network share an all-reduce") {
  const double bytes = 320 * kMB, inside = bytes / 100e9 + 1e-6;
  World world{.nodes = 4, .reduces = true, .network_reduces = true};
  const auto time = [&] { return seconds_of(world, 32, OpKind::kAllReduce, Algorithm::kInSwitch, bytes); };
  REQUIRE(time() == Approx(2 * inside + bytes / 8 / 50e9 + 2.5e-6).epsilon(1e-5));
  world.network_reduces = false;
  REQUIRE(time() == Approx(2 * inside + 2 * 0.75 * bytes / 8 / 50e9 + 6 * 2.5e-6).epsilon(1e-5));
}

TEST_CASE("an algorithm that the machines cannot do is refused with the reason") {
  REQUIRE_THROWS_WITH(seconds_of({}, 8, OpKind::kAllReduce, Algorithm::kInSwitch, kMB),
                      "all_reduce by \"in-switch\": the scale-up switches of its nodes do not reduce");
  REQUIRE_THROWS_WITH(
      seconds_of({.nodes = 4, .per_node = 1}, 4, OpKind::kAllReduce, Algorithm::kInSwitch, kMB),
      "all_reduce by \"in-switch\": the switches of the network do not reduce");
  REQUIRE_THROWS_WITH(
      seconds_of({.nodes = 2, .reduces = true}, 12, OpKind::kAllReduce, Algorithm::kInSwitch, kMB),
      "all_reduce by \"in-switch\": the group has not equally many members in each node");
}

// 4 nodes of 8 and next to no bytes. Alone a rank posts a message for each of 24 ranks elsewhere, of 1 us
// each; together, the NIC of a rail posts one for each of the 3 devices of its rail.
TEST_CASE("messages to other nodes cost their sender time and rail-local posts an eighth of them") {
  const World world{.nodes = 4, .message_time = Time{1'000}};
  for (const bool fold : {true, false}) {
    const auto time = [&](Algorithm algorithm) {
      return seconds_of(world, {.ranks = 32, .fold = fold},
                        communication_op(OpKind::kAllToAll, 3200, algorithm));
    };
    REQUIRE(time(Algorithm::kDirect) == Approx(24e-6 + 3.5e-6).epsilon(1e-3));
    REQUIRE(time(Algorithm::kRailLocal) == Approx(3e-6 + 3.5e-6).epsilon(1e-3));
  }
}

// 4 nodes of 8 under one leaf for each rail, uplinks of a quarter: 4 * 50e9 / 4. Direct: up from each leaf go
// the messages of 4 ranks for 3 nodes and 7 other rails, S/32 each. Rail-local: none; a NIC passes 3 * 8
// messages, and the link carries 7 to ranks of the node and 21 on their way to other rails.
TEST_CASE("a rail-local all-to-all leaves the spine alone where a direct one climbs to it") {
  const World world{.nodes = 4, .leaf_ports = 4, .oversubscription = 4, .tiers = 2};
  const double part = 10 * kMB;
  for (const bool fold : {true, false}) {
    const auto time = [&](Algorithm algorithm) {
      return seconds_of(world, {.ranks = 32, .fold = fold},
                        communication_op(OpKind::kAllToAll, 32 * part, algorithm));
    };
    REQUIRE(time(Algorithm::kDirect) == Approx(84 * part / 50e9 + 3.5e-6).epsilon(1e-4));
    REQUIRE(time(Algorithm::kRailLocal) == Approx(24 * part / 50e9 + 3.5e-6).epsilon(1e-4));
  }
}

// 4 channels of 10 GB/s pass 40 of the link's 100 GB/s; 12 pass more than the link does.
TEST_CASE("fewer channels make a collective slower until the link binds") {
  World world{.channel_rate = 10e9};
  const auto time = [&](int channels) {
    Op op = communication_op(OpKind::kAllReduce, 800 * kMB);
    op.units = static_cast<std::int16_t>(channels);
    return seconds_of(world, {.ranks = 8, .fold = true}, op);
  };
  const double sent = 2 * 7.0 / 8 * 800 * kMB, latency = 14e-6;
  REQUIRE(time(4) == Approx(sent / 40e9 + latency).epsilon(1e-5));
  REQUIRE(time(8) == Approx(sent / 80e9 + latency).epsilon(1e-5));
  REQUIRE(time(12) == Approx(sent / 100e9 + latency).epsilon(1e-5));
}

// Of up to 32 members, or nodes, messages are listed, of more they are counted. One channel of 10 GB/s passes
// all that a member sends: S less its own part, between the nodes after as much as half of S inside.
TEST_CASE("channels limit exchanges among many members as those among few") {
  const double bytes = 400 * kMB, channel = 10e9;
  const auto time = [&](int nodes, int per_node, Algorithm algorithm) {
    Op op = communication_op(OpKind::kAllToAll, bytes, algorithm);
    op.units = 1;
    return seconds_of({.nodes = nodes, .per_node = per_node, .channel_rate = channel},
                      {.ranks = nodes * per_node, .fold = true}, op);
  };
  for (const int nodes : {4, 5}) {
    const double n = 8.0 * nodes;
    for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRailLocal})
      REQUIRE(time(nodes, 8, algorithm) == Approx((n - 1) / n * bytes / channel).epsilon(1e-3));
  }
  for (const double nodes : {32.0, 40.0}) {
    const double sent = bytes / 2 + (nodes - 1) / nodes * bytes;
    REQUIRE(time(static_cast<int>(nodes), 2, Algorithm::kHierarchical) ==
            Approx(sent / channel).epsilon(1e-3));
  }
}

// A GEMM of 100 cores beside a collective that holds 20: it has 80 and takes 100/80 as long.
TEST_CASE("channels hold cores that the kernel beside them misses") {
  const Cluster cluster = make_cluster({.channel_rate = 10e9});
  const Layout layout = make_layout({.ranks = 8, .fold = true});
  Op reduce = communication_op(OpKind::kAllReduce, 800 * kMB);
  reduce.units = 20;
  const FragmentPtr both = make_fragment({{reduce}, {compute_op(OpKind::kGemm)}});
  const WorldRun outcome =
      simulate({cluster, layout, on_all_classes(layout, both), {{OpKind::kGemm, {1e-3}}}});
  const Span& gemm = outcome.span(0, 1);
  REQUIRE((gemm.end - gemm.start).seconds() == Approx(1e-3 * 100 / 80).epsilon(1e-6));
}

TEST_CASE("every algorithm takes as long folded as unfolded in groups of any size") {
  const World world{.nodes = 3, .per_node = 4, .message_time = Time{500}, .reduces = true};
  for (const AlgorithmRow& row : algorithm_rows()) {
    for (const OpKind kind : row.kinds) {
      for (const int ranks : {2, 3, 5, 6, 7, 12}) {
        if (kind == OpKind::kSend) continue;
        if (row.value == Algorithm::kInSwitch && ranks > 4 && ranks < 12) continue;  // uneven nodes
        const Op op = communication_op(kind, 12 * kMB, row.value);
        INFO(row.name << " " << to_string(kind) << " " << ranks);
        const double folded = seconds_of(world, {.ranks = ranks, .fold = true}, op);
        REQUIRE(folded == Approx(seconds_of(world, {.ranks = ranks}, op)).epsilon(5e-3));
        REQUIRE(folded > 0);
      }
    }
  }
}

TEST_CASE("the automatic choice is as fast as the fastest algorithm for every kind and size") {
  const World world{.nodes = 4, .message_time = Time{500}, .reduces = true, .network_reduces = true};
  const LayoutSpec all{.ranks = 32, .fold = true};
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kBroadcast, OpKind::kAllToAll}) {
    for (const double bytes : {1e3, 1e6, 1e9}) {
      const double automatic = seconds_of(world, all, communication_op(kind, bytes, Algorithm::kAuto));
      for (const AlgorithmRow& row : algorithm_rows()) {
        if (!has_algorithm(kind, row.value)) continue;
        INFO(row.name << " " << to_string(kind) << " " << bytes);
        REQUIRE(automatic <= seconds_of(world, all, communication_op(kind, bytes, row.value)) + 1e-9);
      }
    }
  }
}
