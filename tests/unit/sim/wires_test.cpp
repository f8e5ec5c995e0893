// Max-min sharing, on examples small enough to solve by hand. Wires are NICs of one-device nodes, 100 B/s
// each, so that a byte takes 10 ms.
#include <catch2/catch.hpp>

#include "sim/network/wire_table.h"
#include "sim/network/wires.h"
#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

struct Net {
  Cluster cluster = make_cluster({.nodes = 4, .per_node = 1, .nic = 100});
  WireTable table{cluster};
  Wires wires{table};
  int a = table.wire({WireKind::kNicOut, 0}), b = table.wire({WireKind::kNicOut, 1}),
      c = table.wire({WireKind::kNicOut, 2});
};

}  // namespace

TEST_CASE("a flow alone has the rate of its narrowest wire") {
  Net net;
  const FlowClass flow{500, {{net.a, 1}, {net.b, 2}}};  // weight 2: the class takes twice its rate of wire b
  const int slot = net.wires.start(flow, 1, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(slot) == 50);
  REQUIRE(net.wires.next_event() == Time{10'000'000'000});
}

TEST_CASE("two flows on one wire have half of it each, and the one that stays gets the rest") {
  Net net;
  const FlowClass small{100, {{net.a, 1}}}, large{300, {{net.a, 1}}};
  net.wires.start(small, 1, {});
  const int second = net.wires.start(large, 2, {});
  net.wires.solve({});
  REQUIRE(net.wires.next_event() == Time{2'000'000'000});  // 100 bytes at 50 B/s
  REQUIRE(net.wires.pop_finished(Time{2'000'000'000}) >= 0);
  net.wires.solve(Time{2'000'000'000});
  REQUIRE(net.wires.rate(second) == 100);
  REQUIRE(net.wires.next_event() == Time{4'000'000'000});  // 200 bytes left at 100 B/s
}

// The textbook case: a long flow over wires a and b, a short one on each. The long one gets half of either,
// so do they.
TEST_CASE("a long flow shares evenly with a short one on each of its wires") {
  Net net;
  const FlowClass on_a{100, {{net.a, 1}}}, on_b{100, {{net.b, 1}}}, over_both{100, {{net.a, 1}, {net.b, 1}}};
  const int first = net.wires.start(on_a, 1, {}), second = net.wires.start(on_b, 2, {}),
            both = net.wires.start(over_both, 3, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(first) == 50);
  REQUIRE(net.wires.rate(second) == 50);
  REQUIRE(net.wires.rate(both) == 50);
}

// Wire a carries x and y and z, wire b carries z and w: 100/3 each on a; w takes what z leaves on b, 100 -
// 100/3.
TEST_CASE("what a flow cannot use goes to those that can") {
  Net net;
  const FlowClass on_a{1, {{net.a, 1}}}, z{1, {{net.a, 1}, {net.b, 1}}}, w{1, {{net.b, 1}}};
  net.wires.start(on_a, 1, {});
  net.wires.start(on_a, 2, {});
  const int on_both = net.wires.start(z, 3, {}), rest = net.wires.start(w, 4, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(on_both) == Approx(100.0 / 3));
  REQUIRE(net.wires.rate(rest) == Approx(200.0 / 3));
}

// A class of 3 flows against one: each of the four has a quarter.
TEST_CASE("a class of three equal flows counts as three") {
  Net net;
  const FlowClass three{75, {{net.a, 3}}}, one{75, {{net.a, 1}}};
  const int many = net.wires.start(three, 1, {}), single = net.wires.start(one, 2, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(many) == 25);
  REQUIRE(net.wires.rate(single) == 25);
}

TEST_CASE("a flow that begins elsewhere changes nothing here") {
  Net net;
  const FlowClass here{100, {{net.a, 1}}}, there{100, {{net.c, 1}}};
  const int slot = net.wires.start(here, 1, {});
  net.wires.solve({});
  net.wires.start(there, 2, Time{400'000'000});
  net.wires.solve(Time{400'000'000});
  REQUIRE(net.wires.rate(slot) == 100);
  REQUIRE(net.wires.next_event() == Time{1'000'000'000});
}

TEST_CASE("flows that finish together come in the order of ids") {
  Net net;
  const FlowClass flow{100, {{net.a, 1}}};
  const int late = net.wires.start(flow, 7, {}), early = net.wires.start(flow, 3, {});
  net.wires.solve({});
  const Time end = net.wires.next_event();
  REQUIRE(net.wires.pop_finished(end) == early);
  REQUIRE(net.wires.pop_finished(end) == late);
  REQUIRE(net.wires.pop_finished(end) == -1);
  REQUIRE(net.wires.active() == 0);
}

// Random classes on three wires, some starting and some ending: at every moment no wire gives more than it
// has, and every flow has a full wire on which no other flow is faster - the definition of max-min fairness.
TEST_CASE("rates are max-min fair whatever begins and ends") {
  Net net;
  const std::vector<int> ids = {net.a, net.b, net.c};
  std::vector<FlowClass> plans;
  for (int i = 0; i < 60; ++i) {
    FlowClass plan{50.0 + 37 * (i % 7), {}};
    for (int w = 0; w < 3; ++w) {
      if ((i * 5 + 3) % 7 >> w & 1) plan.links.push_back({ids[w], 1.0 + i % 3});
    }
    if (plan.links.empty()) plan.links.push_back({net.b, 1});
    plans.push_back(plan);
  }
  std::map<int, const FlowClass*> active;
  Time now;
  for (std::size_t next = 0; next < plans.size() || !active.empty();) {
    while (next < plans.size() && active.size() < 9)
      active[net.wires.start(plans[next], next, now)] = &plans[next], ++next;
    net.wires.solve(now);
    std::map<int, double> used, fastest;
    for (const auto& [slot, plan] : active) {
      for (const Link& link : plan->links) {
        used[link.wire] += link.weight * net.wires.rate(slot);
        fastest[link.wire] = std::max(fastest[link.wire], net.wires.rate(slot));
      }
    }
    for (const auto& [slot, plan] : active) {
      bool has_bottleneck = false;
      for (const Link& link : plan->links) {
        REQUIRE(used[link.wire] <= 100 * (1 + 1e-9));
        has_bottleneck |=
            used[link.wire] >= 100 * (1 - 1e-9) && net.wires.rate(slot) >= fastest[link.wire] * (1 - 1e-9);
      }
      REQUIRE(has_bottleneck);
    }
    now = net.wires.next_event();
    for (int slot = net.wires.pop_finished(now); slot >= 0; slot = net.wires.pop_finished(now))
      active.erase(slot);
  }
}
