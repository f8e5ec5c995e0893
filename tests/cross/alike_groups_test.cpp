// Groups that do the same side by side over leaves that they share: one stands for all of them, at every
// detail of the network.
#include <string>

#include <catch2/catch.hpp>

#include "hw/document.h"
#include "tests/process.h"

using namespace moebius;

namespace {

// Nodes of each group on all leaves; `uplinks` of each leaf for the 24 NICs below it.
std::string side_by_side(const char* operation, const char* bytes, int groups, int uplinks) {
  return std::string(R"({"moebius": 1, "kind": "collective", "name": "groups",
    "cluster": {"pools": [{"name": "all", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 12}],
      "fabric": {"type": "clos", "nic": "400 Gb/s", "tiers": 2, "leaf_ports": 24, "leaf_uplinks": )") +
         std::to_string(uplinks) + R"(, "transport": "eqds"}},
    "workload": {"algorithm": "auto", "operation": ")" +
         operation + R"(", "bytes": ")" + bytes + R"(", "ranks": 96, "groups": )" + std::to_string(groups) +
         "}}";
}

double seconds(const std::string& scenario, const std::string& options) {
  const test::Scratch scratch;
  const test::Finished run =
      test::run_moebius("run " + scratch.write("s.json", scenario) + " --json " + options);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return parse_document(run.out, "out").root.find("collective")->find("time_s")->number;
}

void require_same(const std::string& scenario, const std::string& options, double tolerance) {
  INFO(scenario << options);
  const double folded = seconds(scenario, options + " --set /workload/fold=true");
  CHECK(folded == Approx(seconds(scenario, options + " --set /workload/fold=false")).epsilon(tolerance));
}

}  // namespace

TEST_CASE("groups over oversubscribed leaves take as long folded as unfolded, latency and bytes") {
  for (const char* operation : {"broadcast", "all-reduce", "all-gather", "reduce-scatter", "all-to-all"})
    for (const char* bytes : {"256 KiB", "16 MiB"}) {
      require_same(side_by_side(operation, bytes, 3, 1), "", 5e-3);
      require_same(side_by_side(operation, bytes, 3, 1), "--set /cluster/collectives=structure", 5e-3);
    }
}

TEST_CASE("packet by packet and message by message all groups send that one stands for") {
  std::string direct = side_by_side("all-to-all", "4 MiB", 6, 3);
  direct.replace(direct.find("auto"), 4, "direct");
  require_same(direct, "--detail packet", 2e-2);
  if (test::run_moebius("--version").out.find("SimGrid") != std::string::npos)
    require_same(direct, "--detail native", 5e-3);
}

TEST_CASE("what the packet network does not know is refused, and a detail that counts for nothing") {
  const test::Scratch scratch;
  const std::string file = scratch.write("s.json", side_by_side("all-to-all", "1 MiB", 1, 24));
  const test::Finished broken = test::run_moebius(
      "run " + file + R"( --detail packet --set '/cluster/failed=[{"nic": 3, "capacity": 0.5}]')");
  CHECK(broken.exit_code == 2);
  CHECK_THAT(broken.err, Catch::Contains("/cluster/failed: --detail packet has ports that are all whole"));
  const test::Finished replay = test::run_moebius("run " + std::string(MOEBIUS_SOURCE_DIR) +
                                                  "/scenarios/smoke/kv-replay.json --detail fluid");
  CHECK(replay.exit_code == 2);
  CHECK_THAT(replay.err, Catch::Contains("--detail fluid counts for nothing"));
}

// A group of 8 stands on one node, however many ranks there are.
TEST_CASE("what a collective's figures are trusted for goes by the nodes of a group") {
  const test::Scratch scratch;
  const std::string file = scratch.write("s.json", side_by_side("all-reduce", "16 MiB", 1, 24));
  const auto reach = [&](const std::string& ranks) {
    return test::run_moebius("run " + file + " --set /workload/ranks=" + ranks +
                             " --set /workload/groups=" + (ranks == "16" ? "2" : "1"))
        .out;
  };
  CHECK_THAT(reach("16"), Catch::Contains("in a node"));
  CHECK_THAT(reach("32"), !Catch::Contains("in a node"));
}

TEST_CASE("groups at unlike places of their nodes load leaves folded as unfolded") {
  const auto alone = [](const std::string& fold) {
    const test::Scratch scratch;
    const test::Finished run = test::run_moebius(
        "run " + scratch.write("s.json", side_by_side("all-gather", "64 MiB", 1, 1)) +
        " --json --set /cluster/fabric/leaf_ports=8 --set '/workload={\"fold\": " + fold +
        R"(, "tenants": [{"name": "a", "operation": "all-gather", "bytes": "64 MiB", "ranks": 8, "block": 4,
            "stride": 12}]}')");
    REQUIRE(run.exit_code == 0);
    return parse_document(run.out, "out").root.find("tenants")->find("a")->find("alone_s")->number;
  };
  CHECK(alone("true") == Approx(alone("false")).epsilon(5e-3));
}

TEST_CASE("packet by packet, too, a direct exchange climbs to change rail") {
  std::string rails = side_by_side("all-to-all", "8 MiB", 1, 2);
  rails.replace(rails.find("\"clos\""), 6, "\"rail-optimised-clos\"");
  const std::string options =
      "--detail packet --set /cluster/fabric/leaf_ports=12 --set "
      "/cluster/pools/0/nodes=8 --set /workload/ranks=64 --set /workload/algorithm=";
  CHECK(seconds(rails, options + "direct") > 2 * seconds(rails, options + "rail-local"));
}

TEST_CASE("groups of which some stay below a leaf take as long folded as unfolded") {
  require_same(side_by_side("all-to-all", "64 KiB", 2, 24),
               "--set /cluster/pools/0/nodes=4 --set /workload/ranks=32", 5e-3);
}

TEST_CASE("groups over two pools of one chip meet folded as unfolded") {
  require_same(
      side_by_side("all-to-all", "64 KiB", 2, 24),
      R"(--set '/cluster/pools=[{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 3},
                  {"name": "b", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}]' --set /workload/ranks=32)",
      5e-3);
}
