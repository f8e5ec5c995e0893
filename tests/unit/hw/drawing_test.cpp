// Pictures of networks: every tier in its row, no line too wide, an SVG that closes what it opens.
#include "hw/fabric/drawing.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

using namespace moebius;
using namespace moebius::literals;

namespace {

Fabric three_tiers(int regions) {
  FabricSpec spec;
  spec.type = "a <test> & more";
  spec.tiers = 3;
  spec.leaf_ports = 4;
  spec.switch_ports = 16;
  spec.pod_leaves = 2;
  spec.transport_efficiency = 1;
  spec.hop_latency = 500_ns;
  spec.region_distance = {30e3};
  spec.region_rate = {100e9};
  std::vector<FabricPool> pools;
  for (int region = 0; region < regions; ++region) {
    FabricPool pool;
    pool.nodes = 32;
    pool.devices_per_node = 4;
    pool.link_rate = {160e9};
    pool.nic_rate = {50e9};
    pool.region = region;
    pools.push_back(pool);
  }
  return Fabric(spec, pools);
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("A drawing has a row for each tier, with its count") {
  // Pods of 2 leaves of each of 4 rails: 8 leaves and 8 nodes, 4 pods, a spine for each of the 4 uplinks.
  const std::string text = text_drawing(sketch_of(three_tiers(1), "node-4"));
  for (const char* row : {"\n  spine ", "\n  leaf ", "\n  node ", "4 in each of 4 pods",
                          "8 in each of 4 pods", "32 x node-4 of 4"})
    CHECK_THAT(text, Catch::Contains(row));
  CHECK(text.rfind("  core", 0) == 0);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 110);
}

TEST_CASE("Regions stand beside each other, with the fibre between them") {
  const std::string text = text_drawing(sketch_of(three_tiers(2), "node-4"));
  CHECK_THAT(text, Catch::Contains("[0] ======= [1]") && Catch::Contains("30 km, 100 GB/s each way"));
}

// 16 nodes of 4 rails are 16 leaves of 4 uplinks under 4 spines of 16 ports, 4 nodes 4 leaves under one.
TEST_CASE("A region that is smaller than another is drawn so") {
  FabricSpec spec;
  spec.tiers = 2;
  spec.leaf_ports = 4;
  spec.switch_ports = 16;
  spec.transport_efficiency = 1;
  spec.region_rate = {100e9};
  FabricPool large;
  large.nodes = 16;
  large.devices_per_node = 4;
  large.link_rate = {160e9};
  large.nic_rate = {50e9};
  FabricPool small = large;
  small.nodes = 4;
  small.region = 1;
  const Sketch sketch = sketch_of(Fabric(spec, {large, small}), "node-4");
  REQUIRE(sketch.pods.size() == 2);
  CHECK(sketch.pods[0].spines == 4);
  CHECK(sketch.pods[1].spines == 1);
  const std::string text = text_drawing(sketch);
  CHECK_THAT(text, Catch::Contains("1 to 4 in each of 2 regions") &&
                       Catch::Contains("4 to 16 in each of 2 regions"));
}

TEST_CASE("A node alone is drawn without a network") {
  FabricPool pool;
  pool.nodes = 1;
  pool.devices_per_node = 2;
  pool.link_rate = {1e9};
  FabricSpec none;
  none.type = "none";
  const Sketch sketch = sketch_of(Fabric(none, {pool}), "node-2");
  CHECK(text_drawing(sketch).find("no network") != std::string::npos);
  CHECK(count(svg_drawing(sketch), "</svg>") == 1);
}

TEST_CASE("An SVG holds a frame for each pod that is shown, and escapes what it is given") {
  const std::string svg = svg_drawing(sketch_of(three_tiers(1), "node-4"));
  CHECK(count(svg, "rx=\"8\"") == 3);  // pods 0, 1 and the last
  CHECK(count(svg, "<svg") == 1);
  CHECK(count(svg, "</svg>") == 1);
  CHECK(count(svg, "<text") == count(svg, "</text>"));
  CHECK_THAT(svg, Catch::Contains("a &lt;test> &amp; more"));
}
