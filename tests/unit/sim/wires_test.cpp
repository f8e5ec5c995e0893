// Max-min sharing, on examples small enough to solve by hand. Wires are NICs of one-device nodes, 100 B/s
// each, so that a byte takes 10 ms.
#include <catch2/catch.hpp>

#include "sim/network/wire_table.h"
#include "sim/network/wires.h"
#include "tests/laws/small_world.h"

using namespace moebius;

namespace {

struct ThreeWires {
  Cluster cluster = make_cluster({.nodes = 4, .per_node = 1, .nic = 100});
  WireTable table{cluster};
  Wires wires{table};
  int a = table.wire({WireKind::kNicOut, 0}), b = table.wire({WireKind::kNicOut, 1}),
      c = table.wire({WireKind::kNicOut, 2});
};

}  // namespace

TEST_CASE("a flow alone has the rate of its narrowest wire") {
  ThreeWires net;
  const FlowClass flow{500, {{net.a, 1}, {net.b, 2}}};  // weight 2: the class takes twice its rate of wire b
  const int slot = net.wires.start(flow, 1, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(slot) == 50);
  REQUIRE(net.wires.next_event() == Time{10'000'000'000});
}

TEST_CASE("two flows on one wire have half of it each, and the one that stays gets the rest") {
  ThreeWires net;
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
  ThreeWires net;
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
  ThreeWires net;
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
  ThreeWires net;
  const FlowClass three{75, {{net.a, 3}}}, one{75, {{net.a, 1}}};
  const int many = net.wires.start(three, 1, {}), single = net.wires.start(one, 2, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(many) == 25);
  REQUIRE(net.wires.rate(single) == 25);
}

TEST_CASE("a flow that begins elsewhere changes nothing here") {
  ThreeWires net;
  const FlowClass here{100, {{net.a, 1}}}, there{100, {{net.c, 1}}};
  const int slot = net.wires.start(here, 1, {});
  net.wires.solve({});
  net.wires.start(there, 2, Time{400'000'000});
  net.wires.solve(Time{400'000'000});
  REQUIRE(net.wires.rate(slot) == 100);
  REQUIRE(net.wires.next_event() == Time{1'000'000'000});
}

TEST_CASE("flows that finish together come in the order of ids") {
  ThreeWires net;
  const FlowClass flow{100, {{net.a, 1}}};
  const int late = net.wires.start(flow, 7, {}), early = net.wires.start(flow, 3, {});
  net.wires.solve({});
  const Time end = net.wires.next_event();
  REQUIRE(net.wires.pop_finished(end) == early);
  REQUIRE(net.wires.pop_finished(end) == late);
  REQUIRE(net.wires.pop_finished(end) == -1);
  REQUIRE(net.wires.active() == 0);
}

// Three flows on 100 B/s: one can use 10 at most, the others share the 90 that it leaves.
TEST_CASE("a flow takes no more than its own limit, and the others have the rest") {
  ThreeWires net;
  const FlowClass slow{100, {{net.a, 1}}, 10}, free{450, {{net.a, 1}}};
  const int capped = net.wires.start(slow, 1, {}), first = net.wires.start(free, 2, {}),
            second = net.wires.start(free, 3, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(capped) == 10);
  REQUIRE(net.wires.rate(first) == 45);
  REQUIRE(net.wires.rate(second) == 45);
  REQUIRE(net.wires.next_event() == Time{10'000'000'000});
}

// The limit is of each flow: a class of 4 at 20 B/s each takes 80 of the wire, one flow has the 20 left.
TEST_CASE("the limit of a class is that of each of its flows") {
  ThreeWires net;
  const FlowClass four{100, {{net.a, 4}}, 20}, one{100, {{net.a, 1}}};
  const int capped = net.wires.start(four, 1, {}), rest = net.wires.start(one, 2, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(capped) == 20);
  REQUIRE(net.wires.rate(rest) == 20);
}

TEST_CASE("a limit above the fair share changes nothing") {
  ThreeWires net;
  const FlowClass limited{100, {{net.a, 1}}, 60}, free{100, {{net.a, 1}}};
  const int first = net.wires.start(limited, 1, {}), second = net.wires.start(free, 2, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(first) == 50);
  REQUIRE(net.wires.rate(second) == 50);
}

// Queue 1 has the whole wire for a second (100 bytes); queue 0 begins when it has gone.
TEST_CASE("a flow of a lower queue stands still while a higher one fills the wire") {
  ThreeWires net;
  const FlowClass high{100, {{net.a, 1}}, 0, 1}, low{50, {{net.a, 1}}};
  const int below = net.wires.start(low, 1, {}), above = net.wires.start(high, 2, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(above) == 100);
  REQUIRE(net.wires.rate(below) == 0);
  REQUIRE(net.wires.next_event() == Time{1'000'000'000});
  REQUIRE(net.wires.pop_finished(Time{1'000'000'000}) == above);
  net.wires.solve(Time{1'000'000'000});
  REQUIRE(net.wires.rate(below) == 100);
  REQUIRE(net.wires.next_event() == Time{1'500'000'000});
}

// Two flows of queue 2 take 30 B/s each of wire a; one of queue 1 the 40 that are left, and as much of wire
// b; two of queue 0 on wire b share its other 60.
TEST_CASE("lower queues share max-min what higher queues leave") {
  ThreeWires net;
  const FlowClass high{100, {{net.a, 1}}, 30, 2}, middle{100, {{net.a, 1}, {net.b, 1}}, 0, 1},
      low{100, {{net.b, 1}}};
  net.wires.start(high, 1, {});
  net.wires.start(high, 2, {});
  const int second = net.wires.start(middle, 3, {}), third = net.wires.start(low, 4, {}),
            fourth = net.wires.start(low, 5, {});
  net.wires.solve({});
  REQUIRE(net.wires.rate(second) == 40);
  REQUIRE(net.wires.rate(third) == 30);
  REQUIRE(net.wires.rate(fourth) == 30);
}

// 100 bytes: 50 in half a second at full rate, then nothing for 10 s, then 50 at a quarter of it: 2 s.
TEST_CASE("flows stand still on a wire that is down and go on when it returns") {
  ThreeWires net;
  const FlowClass flow{100, {{net.a, 1}, {net.b, 1}}};
  const int slot = net.wires.start(flow, 1, {});
  net.wires.solve({});
  const Time down{500'000'000}, up{10'500'000'000};
  net.wires.set_capacity(net.b, 0);
  net.wires.solve(down);
  REQUIRE(net.wires.rate(slot) == 0);
  REQUIRE(net.wires.next_event() == kForever);
  net.wires.set_capacity(net.b, 0.25);
  net.wires.solve(up);
  REQUIRE(net.wires.rate(slot) == 25);
  REQUIRE(net.wires.next_event() == Time{12'500'000'000});
}

// A class of two flows of 100 bytes, at 50 B/s each: after 1.5 s 75 bytes of each have crossed, at the end
// all 200; a wire that no flow used has carried nothing.
TEST_CASE("a wire counts what crossed it while flows are under way and after") {
  ThreeWires net;
  const FlowClass two{100, {{net.a, 2}}};
  net.wires.start(two, 1, {});
  net.wires.solve({});
  REQUIRE(net.wires.carried(net.a, Time{1'500'000'000}) == Approx(150));
  REQUIRE(net.wires.pop_finished(Time{2'000'000'000}) >= 0);
  REQUIRE(net.wires.carried(net.a, Time{2'000'000'000}) == 200);
  REQUIRE(net.wires.carried(net.b, Time{2'000'000'000}) == 0);
}

// Random classes on three wires, some starting and some ending: at every moment no wire gives more than it
// has, and every flow has a full wire on which no other flow is faster - the definition of max-min fairness.
TEST_CASE("rates are max-min fair whatever begins and ends") {
  ThreeWires net;
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
