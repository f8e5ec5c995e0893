// Sharing that starts again from the level of a change against sharing from nothing.
#include <catch2/catch.hpp>

#include <deque>
#include <map>
#include <random>

#include "sim/network/wire_table.h"
#include "sim/network/wires.h"
#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

constexpr int kNodes = 8;

struct ManyWires {
  Cluster cluster = make_cluster({.nodes = kNodes, .per_node = 1, .nic = 100});
  WireTable table{cluster};
  std::vector<int> ids;
  std::vector<double> shares;
  ManyWires() {
    for (int node = 0; node < kNodes; ++node) {
      ids.push_back(table.wire({WireKind::kNicOut, node}));
      ids.push_back(table.wire({WireKind::kNicIn, node}));
    }
    shares.assign(ids.size(), 1);
  }
};

struct Kinds {
  bool limits = false, queues = false, capacities = false;
};

FlowClass random_flow(std::mt19937& random, const ManyWires& net, const Kinds& kinds) {
  const auto below = [&](unsigned n) { return random() % n; };
  FlowClass flow{10.0 + below(400), {}};
  const unsigned hops = 1 + below(4), first = below(static_cast<unsigned>(net.ids.size()));
  for (unsigned hop = 0; hop < hops; ++hop)  // 3 and 16 have no common divisor: no wire twice
    flow.links.push_back({net.ids[(first + 3 * hop) % net.ids.size()], 1.0 + 0.5 * below(3)});
  if (kinds.limits && below(3) == 0) flow.most_rate = 1.0 + below(40);
  if (kinds.queues) flow.queue = static_cast<std::uint8_t>(below(3));
  return flow;
}

// The rates of the live flows, all of them started at once.
std::map<int, double> from_nothing(const ManyWires& net, const std::map<int, const FlowClass*>& live) {
  Wires wires(net.table);
  for (std::size_t i = 0; i < net.ids.size(); ++i) wires.set_capacity(net.ids[i], net.shares[i]);
  std::map<int, int> slots;
  for (const auto& [slot, flow] : live) slots[slot] = wires.start(*flow, 0, {});
  wires.solve({});
  std::map<int, double> rates;
  for (const auto& [slot, there] : slots) rates[slot] = wires.rate(there);
  return rates;
}

// 600 flows on 16 wires, some 40 at a time; `kinds` says what they have besides bytes and wires.
void require_same_rates(const Kinds& kinds, unsigned seed) {
  std::mt19937 random(seed);
  ManyWires net;
  Wires wires(net.table);
  std::deque<FlowClass> flows;
  std::map<int, const FlowClass*> live;
  Time now;
  double worst = 0;
  while (flows.size() < 600) {
    for (unsigned begin = random() % 3; begin > 0 && live.size() < 40; --begin) {
      flows.push_back(random_flow(random, net, kinds));
      live[wires.start(flows.back(), flows.size(), now)] = &flows.back();
    }
    if (kinds.capacities && random() % 4 == 0) {
      const std::size_t wire = random() % net.ids.size();
      net.shares[wire] = 0.25 * (random() % 5);
      wires.set_capacity(net.ids[wire], net.shares[wire]);
    }
    wires.solve(now);
    for (const auto& [slot, rate] : from_nothing(net, live))
      worst = std::max(worst, std::abs(wires.rate(slot) - rate));
    if (wires.next_event() == kForever || random() % 3 == 0) {
      now = std::min(wires.next_event(), now + Time{50'000'000});
    } else {
      now = wires.next_event();
    }
    for (int slot = wires.pop_finished(now); slot >= 0; slot = wires.pop_finished(now)) live.erase(slot);
    if (live.size() >= 40 &&
        wires.next_event() == kForever) {  // all that is left stands on wires that are down
      for (std::size_t wire = 0; wire < net.ids.size(); ++wire)
        wires.set_capacity(net.ids[wire], net.shares[wire] = 1);
    }
  }
  REQUIRE(worst <= 100 * 1e-9);
}

}  // namespace

TEST_CASE("sharing again from the level of a change gives the rates of sharing from nothing") {
  for (unsigned seed = 1; seed <= 5; ++seed) require_same_rates({}, seed);
}

TEST_CASE("sharing again gives the rates of sharing from nothing with limits of flows") {
  for (unsigned seed = 1; seed <= 5; ++seed) require_same_rates({.limits = true}, seed);
}

TEST_CASE("sharing again gives the rates of sharing from nothing between queues") {
  for (unsigned seed = 1; seed <= 5; ++seed) require_same_rates({.queues = true}, seed);
}

TEST_CASE("sharing again gives the rates of sharing from nothing when capacities change") {
  for (unsigned seed = 1; seed <= 5; ++seed)
    require_same_rates({.limits = true, .queues = true, .capacities = true}, seed);
}

// All-to-all of 96 nodes, 9,120 flows of one to ten units: beyond kExactFlows levels may be off by kRough.
TEST_CASE(
    "many flows have rates within a thousandth of sharing from nothing, and wires are not overfull by more") {
  constexpr int kMany = 96;
  const Cluster cluster =
      make_cluster({.nodes = kMany, .per_node = 1, .nic = 100, .leaf_ports = 8, .oversubscription = 2});
  WireTable table(cluster);
  std::mt19937 random(1);
  std::vector<FlowClass> flows;
  std::vector<WireId> path;
  for (int from = 0; from < kMany; ++from) {
    for (int to = 0; to < kMany; ++to) {
      if (from == to) continue;
      path.clear();
      cluster.fabric.route_by_ports(
          from, to, static_cast<int>(random() % static_cast<unsigned>(cluster.fabric.num_paths(from, to))),
          path);
      flows.push_back({100.0 + random() % 900, {}});
      for (const WireId wire : path) flows.back().links.push_back({table.wire(wire), 1});
    }
  }
  Wires wires(table);
  std::map<int, const FlowClass*> live;
  for (const FlowClass& flow : flows) live[wires.start(flow, live.size(), {})] = &flow;
  Time now;
  for (int ended = 0; ended < 600; wires.solve(now)) {
    wires.solve(now);
    now = wires.next_event();
    for (int slot = wires.pop_finished(now); slot >= 0; slot = wires.pop_finished(now), ++ended)
      live.erase(slot);
  }
  Wires anew(table);
  std::map<int, int> slots;
  for (const auto& [slot, flow] : live) slots[slot] = anew.start(*flow, 0, {});
  anew.solve(now);
  std::vector<double> used(table.size(), 0);
  double sum = 0;
  for (const auto& [slot, there] : slots) {
    sum += std::abs(wires.rate(slot) / anew.rate(there) - 1);
    for (const Link& link : live[slot]->links) used[link.wire] += wires.rate(slot);
  }
  REQUIRE(sum / static_cast<double>(slots.size()) < 1e-3);
  REQUIRE(sum > 0);  // sharing is not exact here
  for (int wire = 0; wire < table.size(); ++wire) REQUIRE(used[wire] <= table.capacity(wire) * (1 + 1e-3));
}
