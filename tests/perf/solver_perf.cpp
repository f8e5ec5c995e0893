// What sharing costs where every flow has a path of its own: all-to-all exchanges over trees with fewer
// uplinks than hosts, each message hashed to one path. Collisions make nearly every completion a time of its
// own. Nothing is asserted but that all bytes arrived: figures are printed, one line each.
#include <catch2/catch.hpp>

#include <cstdio>
#include <ctime>

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

struct Exchange {
  int hosts = 128;
  double oversubscription = 2;
  bool uneven = false;  // messages of half to three halves of a megabyte, else all of one
};

// One flow for each ordered pair of hosts; hosts of 50 GB/s, 16 to a leaf.
std::vector<FlowClass> flows_of(const Exchange& exchange, const Cluster& cluster, WireTable& table) {
  std::vector<FlowClass> flows;
  std::vector<WireId> path;
  for (int from = 0; from < exchange.hosts; ++from) {
    for (int to = 0; to < exchange.hosts; ++to) {
      if (from == to) continue;
      path.clear();
      const auto paths = static_cast<std::uint64_t>(cluster.fabric.num_paths(from, to));
      const std::uint64_t key = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to);
      cluster.fabric.route_by_ports(from, to, static_cast<int>(hash_of(key) % paths), path);
      const double part = static_cast<double>(hash_of(key + 1) % 4096) / 4096;
      FlowClass flow{exchange.uneven ? 0.5e6 + 1e6 * part : 1e6, {}};
      for (const WireId wire : path) flow.links.push_back({table.wire(wire), 1});
      flows.push_back(std::move(flow));
    }
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
      "all-to-all of %3d hosts, %.0f:1, %-6s %6zu flows %6d solves %6.0f flows/solve %8.3f s CPU  end %s\n",
      exchange.hosts, exchange.oversubscription, exchange.uneven ? "uneven" : "even", flows.size(), solves,
      static_cast<double>(wires.shared()) / solves, cpu, to_text(now).c_str());
}

}  // namespace

TEST_CASE("all-to-all exchanges with a path for every message") {
  for (const int hosts : {64, 128, 256}) {
    for (const double oversubscription : {1.0, 2.0, 4.0}) {
      measure({hosts, oversubscription, false});
      if (hosts < 256) measure({hosts, oversubscription, true});
    }
  }
}
