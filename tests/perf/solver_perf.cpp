// What sharing costs where every flow has a path of its own: all-to-all exchanges and permutations over trees
// of several oversubscriptions, each message hashed to one path. Collisions and unlike sizes make nearly
// every completion a time of its own. Nothing is asserted but that all bytes arrived: figures are printed,
// one line each. The largest are hidden: test_perf "[.64k]" runs them.
#include <catch2/catch.hpp>

#include <cstdio>
#include <ctime>
#include <numeric>

#include "sim/network/wire_table.h"
#include "sim/network/wires.h"
#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

std::uint64_t hash_of(std::uint64_t x) {
  x ^= x >> 31;
  x *= 0x7fb5d329728ea185ULL;
  x ^= x >> 27;
  x *= 0x81dadef4bc2dd44dULL;
  return x ^ x >> 33;
}

enum class Sizes { kEven, kHalves, kTenfold, kZipf };
constexpr const char* kSizeNames[] = {"even", "halves", "tenfold", "zipf"};

struct Exchange {
  int hosts = 128;
  double oversubscription = 2;
  Sizes sizes = Sizes::kEven;
  int permutations = 0;  // so many instead of an all-to-all
};

// A megabyte; half to three halves of one; one to ten; or the share of rank (from + to) by Zipf's law.
double bytes_of(const Exchange& exchange, int from, int to, std::uint64_t draw) {
  const double part = static_cast<double>(draw % 65536) / 65536;
  switch (exchange.sizes) {
    case Sizes::kEven:
      return 1e6;
    case Sizes::kHalves:
      return 0.5e6 + 1e6 * part;
    case Sizes::kTenfold:
      return 1e6 + 9e6 * part;
    case Sizes::kZipf:
      return 256e6 / (1 + (7 * from + 13 * to + from * to) % exchange.hosts);
  }
  return 0;
}

// Who sends to whom: each ordered pair of hosts, or cycles over all of them (Sattolo's shuffle).
std::vector<std::pair<int, int>> pairs_of(const Exchange& exchange) {
  std::vector<std::pair<int, int>> pairs;
  const int hosts = exchange.hosts;
  for (int from = 0; from < hosts && exchange.permutations == 0; ++from)
    for (int to = 0; to < hosts; ++to)
      if (from != to) pairs.push_back({from, to});
  for (int round = 0; round < exchange.permutations; ++round) {
    std::vector<int> to(hosts);
    std::iota(to.begin(), to.end(), 0);
    for (int i = hosts - 1; i > 0; --i)
      std::swap(to[i], to[hash_of(round * 1000003ULL + i) % static_cast<std::uint64_t>(i)]);
    for (int from = 0; from < hosts; ++from) pairs.push_back({from, to[from]});
  }
  return pairs;
}

// Hosts of 50 GB/s, 16 to a leaf.
std::vector<FlowClass> flows_of(const Exchange& exchange, const Cluster& cluster, WireTable& table) {
  std::vector<FlowClass> flows;
  std::vector<WireId> path;
  for (const auto& [from, to] : pairs_of(exchange)) {
    path.clear();
    const auto paths = static_cast<std::uint64_t>(cluster.fabric.num_paths(from, to));
    const std::uint64_t key = hash_of(flows.size() + 1);
    cluster.fabric.route_by_ports(from, to, static_cast<int>(key % paths), path);
    FlowClass flow{bytes_of(exchange, from, to, hash_of(key)), {}};
    for (const WireId wire : path) flow.links.push_back({table.wire(wire), 1});
    flows.push_back(std::move(flow));
  }
  return flows;
}

void measure(const Exchange& exchange) {
  const Cluster cluster = make_cluster({.nodes = exchange.hosts,
                                        .per_node = 1,
                                        .leaf_ports = 16,
                                        .oversubscription = exchange.oversubscription});
  WireTable table(cluster);
  const std::vector<FlowClass> flows = flows_of(exchange, cluster, table);
  Wires wires(table);
  const std::clock_t start = std::clock();
  std::uint64_t id = 0;
  for (const FlowClass& flow : flows) wires.start(flow, id++, {});
  int solves = 0;
  Time now;
  while (wires.active() > 0) {
    wires.solve(now);
    ++solves;
    now = wires.next_event();
    REQUIRE(now < kForever);
    while (wires.pop_finished(now) >= 0) continue;
  }
  const double cpu = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  double sent = 0, carried = 0;
  for (const FlowClass& flow : flows) sent += flow.bytes;
  for (int host = 0; host < exchange.hosts; ++host)
    carried += wires.carried(table.wire({WireKind::kNicOut, host}), now);
  REQUIRE(carried == Approx(sent));
  std::printf(
      "%-12s of %4d hosts, %.0f:1, %-7s %6zu flows %6d solves %6.0f changes/solve %8.3f s CPU  end %s\n",
      exchange.permutations > 0 ? "permutations" : "all-to-all", exchange.hosts, exchange.oversubscription,
      kSizeNames[static_cast<int>(exchange.sizes)], flows.size(), solves,
      static_cast<double>(wires.shared()) / solves, cpu, to_text(now).c_str());
}

}  // namespace

TEST_CASE("all-to-all exchanges with a path for every message") {
  for (const int hosts : {64, 128, 256}) {
    for (const double oversubscription : {1.0, 2.0, 4.0}) {
      measure({hosts, oversubscription, Sizes::kEven});
      if (hosts < 256) measure({hosts, oversubscription, Sizes::kHalves});
    }
  }
}

TEST_CASE("sixty-four thousand messages of unlike sizes with a path each", "[.64k]") {
  for (const double oversubscription : {1.0, 2.0, 4.0}) {
    measure({256, oversubscription, Sizes::kHalves});
    measure({256, oversubscription, Sizes::kTenfold});
    measure({256, oversubscription, Sizes::kZipf});
    measure({2048, oversubscription, Sizes::kTenfold, 32});
  }
}
