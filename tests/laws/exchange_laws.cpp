// All-to-alls of unequal parts, groups over chips of two vendors, formats: what must hold whatever the
// algorithm.
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>

#include "sim/traffic/collectives.h"
#include "sim/traffic/expert_exchange.h"
#include "sim/traffic/wire_uses.h"
#include "tests/laws/small_world.h"
#include "workloads/schedule/work.h"

using namespace moebius;

namespace {

// Everyone sends 1 MB to each of the others, and 10 MB to rank 0.
PairBytes hot_receiver(int ranks) {
  PairBytes pairs{ranks, std::vector<double>(static_cast<std::size_t>(ranks) * ranks, kMB)};
  for (int from = 0; from < ranks; ++from) pairs.bytes[static_cast<std::size_t>(from) * ranks] = 10 * kMB;
  return pairs;
}

FragmentPtr exchange_of(const PairBytes& pairs, Algorithm algorithm) {
  Fragment fragment;
  fragment.name = "exchange";
  fragment.ops = {communication_op(OpKind::kAllToAll, pairs.largest_before(), algorithm)};
  fragment.pair_bytes = std::make_shared<const PairBytes>(pairs);
  return freeze(std::move(fragment));
}

double seconds_of(const World& world, const PairBytes& pairs, Algorithm algorithm, const Layout& layout) {
  const Cluster cluster = make_cluster(world);
  return simulate({cluster, layout, on_all_classes(layout, exchange_of(pairs, algorithm)), {}, {}}).seconds();
}

double bytes_on(const std::vector<WireUse>& uses, const std::string& kind) {
  for (const WireUse& use : uses) {
    if (use.kind == kind) return use.bytes;
  }
  return 0;
}

struct Placed {
  Cluster cluster;
  Layout layout;
  Sites sites;
  GroupSites group;
  Placed(const World& world, int ranks)
      : cluster(make_cluster(world)),
        layout(make_layout({.ranks = ranks})),
        sites(cluster, layout),
        group(sites.group(consecutive(0, ranks))) {}
};

}  // namespace

// Three ranks send 10 MB each to the first one, over its NIC; it sends 3 MB.
TEST_CASE("in an all-to-all of unequal parts the hot receiver binds") {
  const World world{.nodes = 4, .per_node = 1};
  const Layout layout = make_layout({.ranks = 4});
  for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRailLocal, Algorithm::kAuto})
    REQUIRE(seconds_of(world, hot_receiver(4), algorithm, layout) ==
            Approx(30 * kMB / 50e9 + 2.5e-6).epsilon(1e-5));
}

TEST_CASE("equal parts given one by one take as long as equal parts") {
  const World world{.nodes = 2, .per_node = 4, .message_time = Time{1'000}};
  const PairBytes pairs{8, std::vector<double>(64, 2 * kMB)};
  const Layout layout = make_layout({.ranks = 8});
  const Cluster cluster = make_cluster(world);
  for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRailLocal, Algorithm::kHierarchical}) {
    const FragmentPtr alike = make_fragment({{communication_op(OpKind::kAllToAll, 16 * kMB, algorithm)}});
    const double expected = simulate({cluster, layout, on_all_classes(layout, alike), {}, {}}).seconds();
    if (algorithm == Algorithm::kHierarchical) continue;  // of unequal parts it is the direct one
    REQUIRE(seconds_of(world, pairs, algorithm, layout) == Approx(expected).epsilon(1e-6));
  }
}

// Relabelled: rank i on device (i + 4) % 8, the hot receiver with it.
TEST_CASE("an all-to-all of unequal parts does not depend on the names of nodes") {
  const World world{.nodes = 2, .per_node = 4};
  const Layout layout = make_layout({.ranks = 8});
  Layout relabelled = layout;
  for (int rank = 0; rank < 8; ++rank) relabelled.device_of_rank[rank] = (rank + 4) % 8;
  for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRailLocal})
    REQUIRE(seconds_of(world, hot_receiver(8), algorithm, layout) ==
            seconds_of(world, hot_receiver(8), algorithm, relabelled));
}

// What ranks send to others is the matrix without its diagonal: 8 rows of 7 parts, one of them 10 MB but for
// rank 0.
TEST_CASE("the bytes of unequal parts are counted once, by who sends them") {
  const Layout layout = make_layout({.ranks = 8});
  const FragmentPtr fragment = exchange_of(hot_receiver(8), Algorithm::kDirect);
  double sent = 0;
  for (std::int32_t i = 0; i < 8; ++i) sent += class_work(fragment->ops[0], *fragment, layout, i).sent;
  REQUIRE(sent == Approx(7 * kMB + 7 * 16 * kMB));
}

// Bytes that cross the NICs: 16 x 48 pairs of ranks in different nodes, 10 kB each, whichever way they take;
// what climbs by the direct way is 3 of 4 of them, and nothing by the other.
TEST_CASE("rail-local moves the bytes of rail changes from the spine to the scale-up links") {
  Placed at({.nodes = 16, .per_node = 4, .leaf_ports = 16, .tiers = 2}, 64);
  const auto uses = [&](Algorithm algorithm) {
    const CollectiveQuery query{.kind = OpKind::kAllToAll, .algorithm = algorithm, .bytes = 64 * 10e3};
    return wire_uses(collective_traffic(query, at.group, at.cluster.fabric), at.group, at.cluster.fabric);
  };
  const auto direct = uses(Algorithm::kDirect), local = uses(Algorithm::kRailLocal);
  const double between = 64.0 * 60 * 10e3, inside = 64.0 * 3 * 10e3;
  REQUIRE(bytes_on(direct, "nic-out") == Approx(between));
  REQUIRE(bytes_on(local, "nic-out") == Approx(between));
  REQUIRE(bytes_on(direct, "leaf-up") == Approx(between * 3 / 4));
  REQUIRE(bytes_on(local, "leaf-up") == 0);
  REQUIRE(bytes_on(direct, "scale-up-out") == Approx(inside));
  REQUIRE(bytes_on(local, "scale-up-out") == Approx(inside + between * 3 / 4));
}

TEST_CASE("of two trees every member passes on in one at most and sends at most 2 S") {
  for (const int n : {2, 3, 5, 6, 7, 8, 12, 31}) {
    Placed at({.nodes = n, .per_node = 1}, n);
    const auto steps =
        collective_traffic({OpKind::kAllReduce, Algorithm::kTree, 8.0}, at.group, at.cluster.fabric);
    std::vector<double> out(n, 0), in(n, 0);
    for (const Edge& edge : steps.front().edges) out[edge.from] += edge.bytes, in[edge.to] += edge.bytes;
    INFO(n);
    REQUIRE(std::accumulate(out.begin(), out.end(), 0.0) == Approx(2 * (n - 1) * 8.0));
    for (int i = 0; i < n; ++i) {
      REQUIRE(out[i] <= 16.0);  // a parent and two children, and the parent above the leaf: 4 halves
      REQUIRE(in[i] == out[i]);
    }
  }
}

// 8 devices of 100 GB/s links and NICs of 50, 8 of 40 and 10: a ring passes 2 * 15/16 S / 8 over each NIC and
// 7 times that over the links, and the slower of all these binds.
TEST_CASE("in a group over two vendors' chips the slowest link binds") {
  const auto pool = [](const World& world, const std::string& name) {
    Pool result = make_cluster(world).pools.front();
    result.name = name;
    return result;
  };
  FabricSpec spec = make_cluster({.nodes = 2}).fabric.spec();
  spec.nic_given = false;
  spec.tiers = kAutomaticTiers;
  const std::vector<Pool> pools = {pool({.link = 100e9, .nic = 50e9}, "fast"),
                                   pool({.link = 40e9, .nic = 10e9}, "slow")};
  const Cluster cluster{pools,
                        Fabric(spec, {part_of_fabric(pools[0], spec), part_of_fabric(pools[1], spec)})};
  Layout layout = make_layout({.ranks = 16});
  Op op = communication_op(OpKind::kAllReduce, 160 * kMB);
  const double sent = 2 * 15.0 / 16 * 160 * kMB;
  const double expected = std::max(sent / 8 / 10e9, sent * 7 / 8 / 40e9);
  const double time =
      simulate({cluster, layout, on_all_classes(layout, make_fragment({{op}})), {}, {}}).seconds();
  REQUIRE(time > expected);
  REQUIRE(time < expected + 2 * 15 * 4e-6);  // hops of at most 2 us + 3 switches
}

namespace {

RoutePtr even_route() {
  RouteSpec spec;
  spec.ranks = 16;
  spec.ranks_per_node = 8;
  spec.experts = 64;
  spec.active = 8;
  spec.tokens = 4096;
  return std::make_shared<const Route>(spec);
}

double seconds_of(Op op, const RoutePtr& route) {
  const Cluster cluster = make_cluster({.nodes = 2, .per_node = 8});
  const Layout layout = make_layout({.ranks = 16, .expert = 16, .fold = true});
  std::vector<RoutePtr> routes;
  if (route) routes.push_back(route), op.route = 0;
  return simulate({cluster, layout, on_all_classes(layout, make_fragment({{op}}, routes)), {}, {}}).seconds();
}

}  // namespace

// What is sorted by expert is an all-to-all of rows; combine is the way back.
TEST_CASE("dispatch and combine by the library take as long as an all-to-all of their rows") {
  const RoutePtr route = even_route();
  const double row = 7168, rows = all_to_all_rows(*route);
  const double whole =
      seconds_of(communication_op(OpKind::kAllToAll, rows * row, Algorithm::kAuto, GroupRole::kExpert), {});
  for (const OpKind kind : {OpKind::kDispatch, OpKind::kCombine})
    REQUIRE(seconds_of(communication_op(kind, row, Algorithm::kLibrary, GroupRole::kExpert), route) ==
            Approx(whole).epsilon(1e-9));
}

// 16 ranks of 4,096 tokens: what each gathers is as much as an all-gather of that many rows.
TEST_CASE("dispatch by gathering takes as long as an all-gather of all tokens, combine as a reduce-scatter") {
  const RoutePtr route = even_route();
  const double row = 7168, rows = 16 * 4096.0;
  REQUIRE(gathered_rows(*route) == rows);
  for (const auto& [exchange, collective] : {std::pair{OpKind::kDispatch, OpKind::kAllGather},
                                             std::pair{OpKind::kCombine, OpKind::kReduceScatter}}) {
    const double whole =
        seconds_of(communication_op(collective, rows * row, Algorithm::kAuto, GroupRole::kExpert), {});
    REQUIRE(seconds_of(communication_op(exchange, row, Algorithm::kRing, GroupRole::kExpert), route) ==
            Approx(whole).epsilon(1e-9));
  }
}
