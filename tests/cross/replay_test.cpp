// `moebius run` of a replay, and what a replay cannot be asked.
#include <catch2/catch.hpp>

#include <filesystem>

#include "tests/process.h"
#include "tests/scenario_file.h"
#include "workloads/report/report.h"

namespace moebius {
namespace {

const std::string kReplay = test::scenario_file("smoke/kv-replay.json");

std::string without_use(const std::string& json) {
  return json.substr(0, json.find("\"wall_s\""));
}

}  // namespace

TEST_CASE("the shipped replay says what was hit as text and as JSON") {
  const auto json = test::run_moebius("run " + kReplay + " --json");
  REQUIRE(json.exit_code == 0);
  CHECK(report_value(json.out, "kv.requests") == 12031);
  const double total = *report_value(json.out, "kv.total_blocks"),
               hit = *report_value(json.out, "kv.hit_blocks");
  CHECK(*report_value(json.out, "kv.hit_share") == Approx(hit / total));
  CHECK(*report_value(json.out, "kv.resident_blocks") == 30000);
  const auto again = test::run_moebius("run " + kReplay + " --json");
  CHECK(without_use(again.out) == without_use(json.out));
  const auto text = test::run_moebius("run " + kReplay);
  CHECK(text.out.find("one cache of 30,000 blocks") != std::string::npos);
}

TEST_CASE("a published trace takes the place of the generator") {
  const std::string trace = std::string(MOEBIUS_SOURCE_DIR) + "/../shared/traces/conversation_trace.jsonl.gz";
  if (!std::filesystem::exists(trace)) {
    WARN("skipped: the trace is not beside the project (../shared/traces)");
    return;
  }
  const auto run = test::run_moebius(
      "run " + kReplay + " --json --set /cache/capacity_blocks=null --set /workload/trace/path=" + trace);
  REQUIRE(run.exit_code == 0);
  CHECK(report_value(run.out, "kv.hit_blocks") == 105710);
  CHECK(report_value(run.out, "kv.distinct_blocks") == 182790);
}

TEST_CASE("a bad row ends a replay with its line") {
  const test::Scratch scratch;
  const std::string trace = scratch.write("t.jsonl", "{\"timestamp\": 0, \"input_length\": 5}\n");
  const auto run = test::run_moebius("run " + kReplay + " --set /workload/trace/path=" + trace);
  CHECK(run.exit_code == 2);
  CHECK(run.err == "moebius: " + trace + ":1: expected the key \"output_length\", found none\n");
}

TEST_CASE("a replay has nothing to execute") {
  for (const std::string options : {"--executor host", "--explain", "--dump /dev/null"}) {
    INFO(options);
    const auto run = test::run_moebius("run " + kReplay + " " + options);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find("a replay of a cache schedules no ops") != std::string::npos);
  }
  CHECK(test::run_moebius("crosscheck " + kReplay).exit_code == 2);
}

TEST_CASE("eplb prints one placement as JSON and refuses what does not divide") {
  const test::Scratch scratch;
  const std::string input = scratch.write("loads.json",
                                          "{\"weights\": [[1, 5, 2]], \"num_replicas\": 4, \"num_groups\": "
                                          "1, \"num_nodes\": 1, \"num_gpus\": 4}");
  const auto run = test::run_moebius("eplb " + input + " --json");
  REQUIRE(run.exit_code == 0);
  CHECK(run.out ==
        "{\"phy2log\": [[0, 1, 2, 1]], \"log2phy\": [[[0, -1], [1, 3], [2, -1]]], \"logcnt\": [[1, 2, 1]], "
        "\"gpu_load\": [[1, 2.5, 2, 2.5]]}\n");
  CHECK(test::run_moebius("eplb " + input).out.find("balancedness") != std::string::npos);
  const std::string bad = scratch.write("bad.json",
                                        "{\"weights\": [[1, 5, 2]], \"num_replicas\": 4, \"num_groups\": 1, "
                                        "\"num_nodes\": 1, \"num_gpus\": 3}");
  const auto refused = test::run_moebius("eplb " + bad + " --json");
  CHECK(refused.exit_code == 2);
  CHECK(refused.out.empty());
  CHECK(refused.err == "moebius: " + bad + ":1: /num_gpus: 3 gpus do not divide the 4 slots\n");
}

}  // namespace moebius
