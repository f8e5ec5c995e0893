// Keys of networks and super-nodes that are wrong, one at a time, and views of networks that cannot be shown.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kRegions = "study/deepseek-v3-train-two-regions.json";

}  // namespace

TEST_CASE("a distance is a length, a link between regions has a rate") {
  CHECK(refusal(kRegions, "", "") == "");
  CHECK(refusal(kRegions, "/cluster/fabric/region_distance", "30") ==
        R"(s.json: --set /cluster/fabric/region_distance: expected a length such as "30 km", found 30)");
  CHECK(refusal(kRegions, "/cluster/fabric/region_distance", "30 us") ==
        R"(s.json: --set /cluster/fabric/region_distance: expected a length such as "30 km", found "30 us")");
  CHECK(
      refusal(kRegions, "/cluster/fabric/region_rate", "30 km") ==
      R"(s.json: --set /cluster/fabric/region_rate: expected a byte rate such as "400 Gb/s", found "30 km")");
  CHECK(refusal(kRegions, "/cluster/fabric/region_rate", "null") ==
        "s.json:11: /cluster/pools: 2 regions, but nothing joins them: expected \"region_rate\", and "
        "\"region_distance\", of the fabric");
}

TEST_CASE("a transport has a name, and packets larger than their headers") {
  const char* const flows = "validate/flows-incast-16.json";
  CHECK(refusal(flows, "", "") == "");
  CHECK_THAT(refusal(flows, "/cluster/fabric/transport", R"("tcp")"),
             Catch::Contains(R"(/cluster/fabric/transport: expected one of "ideal", "eqds", found "tcp")"));
  CHECK_THAT(refusal(flows, "/cluster/fabric/packet", R"("64 B")"),
             Catch::Contains("a header of 64 B: expected less than the packet of 64 B"));
  CHECK_THAT(refusal(flows, "/cluster/fabric/credit", R"("9000 B")"),
             Catch::Contains("pulls of 9000 B every 4156 B: more than a link carries"));
  CHECK_THAT(refusal(kCollective, "/cluster/fabric/window", "50"),
             Catch::Contains(R"(unknown key "window")"));
}

TEST_CASE("all pools name a region or none does, and a region's pools stand together") {
  CHECK(refusal(kCollective, "/cluster/pools/0/region", "7") ==
        R"(s.json: --set /cluster/pools/0/region: expected a string, found 7)");
  CHECK(refusal(kRegions, "/cluster/pools/1/region", R"("")") ==
        R"(s.json:11: /cluster/pools: pool "second half" names no region, but pool "first half" does: )"
        "expected one for each pool");
  const char* const pools = R"([
    {"name": "a", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 64, "region": "x"},
    {"name": "b", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 64, "region": "y"},
    {"name": "c", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 128, "region": "x"}])";
  CHECK_THAT(refusal(kRegions, "/cluster/pools", pools),
             Catch::Contains(R"(pool "c" stands in region "x" after one in "y": )"
                             "expected the pools of a region one after the other"));
}

TEST_CASE("training on several pools counts the devices of all, whatever their chips") {
  CHECK(refusal(kRegions, "/cluster/pools/1/accelerator", "h100-sxm").empty());
  CHECK_THAT(refusal(kRegions, "/plan/pp/degree", "3"),
             Catch::Contains("ranks a replica do not divide the 2048 devices of 2 pools"));
}

TEST_CASE("boards are whole, on a switch, and no faster than the link") {
  const std::string node = "/cluster/pools/0/node";
  const std::string at = "s.json: --set /cluster/pools/0/node/";
  CHECK_THAT(refusal(kCollective, node, R"({"base": "hgx-8", "board": 3})"),
             Catch::Contains("node \"hgx-8\" has 8 accelerators on boards of 3: expected whole boards"));
  CHECK_THAT(
      refusal(kCollective, node, R"({"base": "hgx-8", "scale_up": "full-mesh", "board": 4})"),
      Catch::Contains("boards of 4 accelerators: expected \"scale_up\": \"switch\", which joins them"));
  CHECK(refusal(kCollective, node, R"({"base": "hgx-8", "board_efficiency": 1.5})") ==
        at + "board_efficiency: expected a number of more than 0 and at most 1, found 1.5");
  CHECK(refusal(kCollective, node, R"({"base": "hgx-8", "board_latency": "1 GB"})") ==
        at + R"(board_latency: expected a time such as "2.8 us", found "1 GB")");
  CHECK(refusal(kCollective, "/cluster/fabric/nic_ports", "0") ==
        "s.json: --set /cluster/fabric/nic_ports: expected an integer from 1 to 1048576, found 0");
}

TEST_CASE("uplinks are as many as the oversubscription says, where both are given") {
  CHECK(refusal(kCollective, "/cluster/fabric",
                R"({"type": "rail-optimised-clos", "leaf_uplinks": 4, "oversubscription": 1})") ==
        "s.json: --set /cluster/fabric/leaf_uplinks: expected 32, to which 32 leaf ports of an "
        "oversubscription of 1 "
        "come, found 4");
  CHECK(refusal(kCollective, "/cluster/fabric",
                R"({"type": "rail-optimised-clos", "leaf_uplinks": 8, "oversubscription": 4})") == "");
}
