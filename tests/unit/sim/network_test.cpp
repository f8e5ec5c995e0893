// What each level of network detail does when a wire's capacity changes and when it is asked what a wire has
// carried. Wires are NICs of one-device nodes, 100 B/s each.
#include <catch2/catch.hpp>

#include "sim/network/network.h"
#include "sim/network/wire_table.h"
#include "tests/laws/small_world.h"

using namespace moebius;

// A latency of 1 s, then 100 bytes: half of them until 1.5 s, when the wire goes down for 2 s; the rest at
// half the rate, from 3.5 s to 4.5 s.
TEST_CASE("a transfer waits for a wire that is down and ends when all has crossed") {
  const Cluster cluster = make_cluster({.nodes = 2, .per_node = 1, .nic = 100});
  WireTable table(cluster);
  const int wire = table.wire({WireKind::kNicOut, 0});
  const auto network = make_fluid_network(table);
  Step step;
  step.latency = 1;
  step.flows = {{100, {{wire, 1}}}};
  std::vector<std::int32_t> ended;
  network->start(7, step, 1, {});
  REQUIRE(network->next_event() == Time{1'000'000'000});
  network->advance(Time{1'000'000'000}, ended);
  REQUIRE(network->next_event() == Time{2'000'000'000});
  network->set_capacity(wire, 0, Time{1'500'000'000});
  REQUIRE(network->carried(wire) == Approx(50));
  REQUIRE(network->next_event() == kForever);
  network->set_capacity(wire, 0.5, Time{3'500'000'000});
  REQUIRE(network->next_event() == Time{4'500'000'000});
  network->advance(Time{4'500'000'000}, ended);
  REQUIRE(ended == std::vector<std::int32_t>{7});
  REQUIRE(network->carried(wire) == 100);
}

TEST_CASE("the alpha-beta network refuses to change or to count wires in one sentence") {
  const auto network = make_alpha_beta_network();
  REQUIRE_THROWS_WITH(network->set_capacity(0, 0.5, {}),
                      "the alpha-beta network shares no wires, so that none of them can change: use fluid");
  REQUIRE_THROWS_WITH(
      network->carried(0),
      "the alpha-beta network shares no wires, so that it counts no bytes on them: use fluid");
}
