#include "workloads/report/heat_map.h"

#include <catch2/catch.hpp>

#include "hw/svg.h"

using namespace moebius;

namespace {

// A run of 100 ns: wire 0 half busy from 20 to 60 ns and idle after; wire 1 full from 60 ns on.
Timeline two_wires() {
  Timeline timeline;
  timeline.counters = {"wire leaf-up 0", "wire leaf-up 1", "tier leaf-up mean", "tier leaf-up max", "pages"};
  timeline.samples = {{0, 0, Time{20}, 0.5}, {2, 0, Time{20}, 0.25}, {3, 0, Time{20}, 0.5},
                      {4, 0, Time{30}, 7},   {0, 0, Time{60}, 0},    {1, 0, Time{60}, 1},
                      {2, 0, Time{60}, 0.5}, {3, 0, Time{60}, 1},    {1, 0, Time{100}, 0},
                      {2, 0, Time{100}, 0},  {3, 0, Time{100}, 0}};
  return timeline;
}

}  // namespace

TEST_CASE("a heat map is the mean of each wire's share over each column") {
  const HeatMap map = heat_map(two_wires(), {.columns = 4, .most_rows = 8});
  REQUIRE(map.end == Time{100});
  REQUIRE(map.tiers.size() == 1);
  const HeatMap::Tier& tier = map.tiers.front();
  REQUIRE(tier.name == "leaf-up");
  REQUIRE(tier.wires.size() == 2);
  REQUIRE(tier.wires[0].name == "leaf-up 0");
  // Columns of 25 ns. Wire 0: 5 of the first 25 ns at 0.5, all of the second, 10 of the third.
  REQUIRE(tier.wires[0].share[0] == Approx(0.1));
  REQUIRE(tier.wires[0].share[1] == Approx(0.5));
  REQUIRE(tier.wires[0].share[2] == Approx(0.2));
  REQUIRE(tier.wires[0].share[3] == Approx(0));
  REQUIRE(tier.wires[1].share[2] == Approx(0.6));
  REQUIRE(tier.wires[1].share[3] == Approx(1));
  REQUIRE(tier.mean[3] == Approx(0.5));
  REQUIRE(tier.max[3] == Approx(1));
}

TEST_CASE(
    "neighbouring wires share a row of the heat map where there are too many, and the busiest is shown") {
  const HeatMap map = heat_map(two_wires(), {.columns = 4, .most_rows = 1});
  REQUIRE(map.tiers.front().wires.size() == 1);
  REQUIRE(map.tiers.front().wires[0].name == "leaf-up 0..1");
  REQUIRE(map.tiers.front().wires[0].share[1] == Approx(0.5));
  REQUIRE(map.tiers.front().wires[0].share[3] == Approx(1));
}

TEST_CASE("a timeline without counters of the network has no heat map") {
  Timeline timeline;
  timeline.counters = {"pages"};
  timeline.samples = {{0, 0, Time{5}, 1}};
  REQUIRE(heat_map(timeline).empty());
}

TEST_CASE("the heat map's text has two lines for each tier and its drawing names every wire") {
  const HeatMap map = heat_map(two_wires());
  const std::string text = to_text(map);
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 3);
  REQUIRE(text.find("leaf-up") != std::string::npos);
  const std::string svg = to_svg(map, "a < b");
  REQUIRE(svg.find("leaf-up 1") != std::string::npos);
  REQUIRE(svg.find("a &lt; b") != std::string::npos);
  REQUIRE(svg.ends_with("</svg>\n"));
}

TEST_CASE("heat goes from white to dark red and stays there beyond the whole") {
  REQUIRE(heat_colour(0) == "#ffffff");
  REQUIRE(heat_colour(1) == "#bd0026");
  REQUIRE(heat_colour(1.5) == "#bd0026");
  REQUIRE(heat_colour(-1) == "#ffffff");
}
