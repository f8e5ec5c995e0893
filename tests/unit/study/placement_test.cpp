// Placement by an estimate: what it counts, that moves are exact, that few nodes are searched completely.
#include "workloads/study/placement/placement.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "workloads/job.h"
#include "workloads/routing/random_stream.h"
#include "workloads/study/placement/block_search.h"
#include "workloads/study/placement/device_orders.h"
#include "workloads/study/placement/fragmented_clusters.h"
#include "workloads/study/placement/volume_partition.h"
#include "tests/catch.h"

namespace moebius {
namespace {

using Devices = std::vector<std::int32_t>;

// Leaves of two nodes of two devices, two to one above them: a NIC sends 1 GB/s, a leaf 2 GB/s to the spine.
Fabric small_fabric(int nodes) {
  FabricSpec spec;
  spec.type = "clos";
  spec.tiers = 2;
  spec.rail_optimised = false;
  spec.nic = {1e9};
  spec.leaf_ports = 4;
  spec.switch_ports = 64;
  spec.oversubscription = 2;
  spec.transport_efficiency = 1;
  FabricPool pool;
  pool.nodes = nodes;
  pool.devices_per_node = 2;
  pool.link_rate = {100e9};
  pool.nic_rate = {1e9};
  return {spec, {pool}};
}

RankExchange ring(Devices ranks, double bytes) {
  return {GroupRole::kData, std::move(ranks), 0, bytes, 0, {}};
}

Devices numbers(int count) {
  Devices all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

double seconds_of(const Fabric& fabric, const std::vector<RankExchange>& exchanges, const Devices& devices) {
  CommunicationLoads loads(fabric, exchanges, static_cast<int>(devices.size()));
  loads.place(devices);
  return loads.cost().seconds;
}

// Rings and messages of random size between random ranks.
std::vector<RankExchange> random_exchanges(int ranks, RandomStream& stream) {
  std::vector<RankExchange> exchanges;
  for (int i = 0; i < 6; ++i) {
    Devices group = numbers(ranks);
    for (std::size_t j = group.size(); j > 1; --j) std::swap(group[j - 1], group[stream.below(j)]);
    group.resize(2 + stream.below(3));
    std::sort(group.begin(), group.end());
    exchanges.push_back(ring(group, 1e9 * stream.unit()));
    exchanges.back().role = i % 2 == 0 ? GroupRole::kData : GroupRole::kExpert;
  }
  return exchanges;
}

TEST_CASE("a ring of two nodes takes its bytes over a NIC and over two NICs side by side half of that") {
  const Fabric fabric = small_fabric(2);
  CHECK(seconds_of(fabric, {ring({0, 1}, 2e9)}, {0, 2}) == Approx(2));
  // Two members in each node: two rings, each with half of the bytes.
  CHECK(seconds_of(fabric, {ring({0, 1, 2, 3}, 2e9)}, {0, 1, 2, 3}) == Approx(1));
  CHECK(seconds_of(fabric, {ring({0, 1}, 2e9)}, {0, 1}) == Approx(0.02));
}

TEST_CASE("leaves that are short of uplinks bind where four rings leave them") {
  // Four rings of 1 GB, each between a device of one leaf and one of the other: 4 GB over 2 GB/s.
  const Fabric fabric = small_fabric(4);
  std::vector<RankExchange> rings;
  for (int i = 0; i < 4; ++i) rings.push_back(ring({i, i + 4}, 1e9));
  CHECK(seconds_of(fabric, rings, numbers(8)) == Approx(2));
  // Partners on one leaf: a NIC each.
  CHECK(seconds_of(fabric, rings, {0, 1, 4, 5, 2, 3, 6, 7}) == Approx(1));
}

TEST_CASE("a move changes the estimate as if all were placed anew and undo takes it back") {
  const Fabric fabric = small_fabric(6);
  RandomStream stream(11);
  const std::vector<RankExchange> exchanges = random_exchanges(8, stream);
  CommunicationLoads loads(fabric, exchanges, 8);
  loads.place(numbers(8));
  for (int i = 0; i < 200; ++i) {
    const Devices before = loads.device_of_rank();
    Devices after = before;
    const auto a = stream.below(8), b = stream.below(8);
    std::swap(after[a], after[b]);
    if (stream.below(3) == 0) {
      const auto to = static_cast<std::int32_t>(8 + stream.below(4));
      if (std::find(after.begin(), after.end(), to) == after.end()) after[a] = to;
    }
    std::vector<std::pair<std::int32_t, std::int32_t>> moves;
    for (std::int32_t rank = 0; rank < 8; ++rank)
      if (after[rank] != before[rank]) moves.push_back({rank, after[rank]});
    loads.move(moves);
    CHECK(loads.cost().seconds == Approx(seconds_of(fabric, exchanges, after)).epsilon(1e-9));
    if (i % 2 == 0) continue;
    loads.undo();
    CHECK(loads.device_of_rank() == before);
    CHECK(loads.cost().seconds == Approx(seconds_of(fabric, exchanges, before)).epsilon(1e-9));
  }
}

TEST_CASE("blocks over few nodes are laid as the best of all permutations") {
  RandomStream stream(5);
  for (int trial = 0; trial < 20; ++trial) {
    const Fabric fabric = small_fabric(6);
    const std::vector<RankExchange> exchanges = random_exchanges(8, stream);
    const PlacementProblem problem{.fabric = fabric, .exchanges = exchanges, .ranks = 8, .free = numbers(12)};
    CommunicationLoads loads(fabric, exchanges, 8);
    loads.place(numbers(8));
    const PlacedRanks start{"naive", numbers(8), loads.cost()};
    const auto found = search_blocks(problem, start, 100'000, loads);
    REQUIRE(found.has_value());
    double best = start.cost.seconds;
    Devices nodes = numbers(6);
    do {
      Devices devices;
      for (int rank = 0; rank < 8; ++rank) devices.push_back(2 * nodes[rank / 2] + rank % 2);
      best = std::min(best, seconds_of(fabric, exchanges, devices));
    } while (std::next_permutation(nodes.begin(), nodes.end()));
    CHECK(found->best.cost.seconds == Approx(best).epsilon(1e-9));
    CHECK(found->tried < 720);  // permutations of six nodes
  }
}

TEST_CASE("ranks that send each other much share a node and nodes that do share a leaf") {
  // Pairs (0, 4), (1, 5), (2, 6), (3, 7) send most; of these 0 and 3, 1 and 2 something.
  std::vector<RankExchange> exchanges;
  for (int i = 0; i < 4; ++i) exchanges.push_back(ring({i, i + 4}, 10e9));
  exchanges.push_back(ring({0, 3}, 1e9));
  exchanges.push_back(ring({1, 2}, 1e9));
  const Devices order = order_by_volume(exchanges, 8, {{2, 2, 2, 2}, {2, 2}});
  const auto node_of = [&](int rank) {
    return (std::find(order.begin(), order.end(), rank) - order.begin()) / 2;
  };
  for (int i = 0; i < 4; ++i) CHECK(node_of(i) == node_of(i + 4));
  CHECK(node_of(0) / 2 == node_of(3) / 2);
  CHECK(node_of(1) / 2 == node_of(2) / 2);
}

TEST_CASE("a job takes the smallest place that holds it") {
  const Fabric fabric = small_fabric(8);
  // Of leaf 0 one node is free, of leaf 1 two, of leaf 2 and 3 two each.
  const Devices free{0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const auto orders = device_orders(fabric, free, 4, {});
  REQUIRE(orders.size() == 2);
  CHECK(orders[0].devices == Devices{0, 1, 4, 5});
  CHECK(orders[1].devices.size() == 4);
  CHECK(orders[1].devices[0] / 4 == orders[1].devices[3] / 4);
}

// Half of a node and a whole one: packed, the whole one comes first. Both units of 1 fill the places alike.
TEST_CASE("different orders of devices are listed once and those of ascending ones ascend") {
  const Fabric fabric = small_fabric(8);
  const Devices free{1, 2, 3};
  const auto orders = device_orders(fabric, free, 3, {1});
  REQUIRE(orders.size() == 2);
  CHECK(orders[0].devices == Devices{1, 2, 3});
  CHECK(orders[1].how == "fewest places");
  CHECK(orders[1].devices == Devices{2, 3, 1});
}

TEST_CASE("on fragmented clusters what is found is estimated no slower than naive") {
  const Library library("");
  for (std::uint64_t seed = 21; seed < 24; ++seed) {
    const FragmentedCluster cluster = fragmented_cluster(seed);
    INFO(cluster.name);
    const Job job = read_job(parse_document(cluster.scenario, "s.json"), {}, library);
    const std::vector<RankExchange> exchanges = exchanges_of({.model = job.scenario.model,
                                                          .plan = job.scenario.plan,
                                                          .workload = job.scenario.training,
                                                          .ranks_per_node = 8});
    const Placements found = find_placements({.fabric = job.scenario.cluster->fabric,
                                              .exchanges = exchanges,
                                              .ranks = cluster.ranks,
                                              .free = cluster.free,
                                              .tp = job.scenario.plan.tp},
                                             2);
    CHECK(found.best.front().cost.seconds <= found.naive.cost.seconds);
    Devices devices = found.best.front().device_of_rank;
    std::sort(devices.begin(), devices.end());
    CHECK(std::adjacent_find(devices.begin(), devices.end()) == devices.end());
    CHECK(std::includes(cluster.free.begin(), cluster.free.end(), devices.begin(), devices.end()));
  }
}

// Every exchange of the schedule, once: what GroupRole::kData's members send in a step is twice (n - 1) / n
// of their gradients, in FP32, where nothing is sharded; and a message of a microbatch's hidden rows goes
// each way between two stages.
TEST_CASE("volumes are those of the plan") {
  const Library library("");
  const char* scenario =
      R"({"moebius": 1, "kind": "training", "name": "s", "model": {"base": "llama-3.1-8b", "layers": 4},
    "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                "fabric": {"type": "rail-optimised-clos"}},
    "plan": {"pp": {"degree": 2}, "dp": {"degree": 4}},
    "workload": {"sequence_length": 1024, "global_batch": 12}})";
  const Job job = read_job(parse_document(scenario, "s.json"), {}, library);
  double messages = 0, gradients = 0;
  for (const RankExchange& exchange : exchanges_of({.model = job.scenario.model,
                                  .plan = job.scenario.plan,
                                  .workload = job.scenario.training,
                                  .ranks_per_node = 8})) {
    if (exchange.role == GroupRole::kNext || exchange.role == GroupRole::kPrevious)
      messages += total_bytes(exchange);
    if (exchange.role == GroupRole::kData) gradients += total_bytes(exchange);
  }
  // 4 replicas, 3 microbatches, there and back, 1024 x 4096 in BF16.
  CHECK(messages == Approx(4 * 3 * 2 * 1024.0 * 4096 * 2));
  // Over all ranks: 4 replicas send 2 * 3/4 of every parameter's gradient.
  CHECK(gradients == Approx(4 * 1.5 * 4 * count_parameters(job.scenario.model).total()).epsilon(0.01));
}

}  // namespace
}  // namespace moebius
