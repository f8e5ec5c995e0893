// Searches over keys that are none of a space's own, and plans of which two settings meet.
#include <set>
#include <string>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "hw/document.h"
#include "tests/process.h"
#include "tests/scenario_file.h"

using namespace moebius;

namespace {

std::string space(const std::string& vary) {
  return R"({"moebius": 1, "kind": "search-space", "name": "x", "vary": {)" + vary + "}}";
}

Document searched(const std::string& arguments) {
  const test::Finished run = test::run_moebius("search " + arguments + " --json");
  INFO(arguments << "\n" << run.err);
  REQUIRE(run.exit_code == 0);
  return parse_document(run.out, "out");
}

const char* const kOnePlan =
    R"("/plan/tp/attention": [1], "/plan/tp/expert": [1], "/plan/ep/degree": [2], "/plan/pp/degree": [1], "/plan/cp": [1],
       "/workload/micro_batch": [1])";

// On eight cards.
std::string small_mixtral(const std::string& plan, int batch) {
  return R"({"moebius": 1, "kind": "training", "name": "t",
    "model": {"base": "mixtral-8x7b", "layers": 4, "hidden": 2048, "dense_width": 4096},
    "cluster": {"pools": [{"name": "a", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 1}],
      "fabric": {"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s"}},
    "plan": {"memory": "report", )" +
         plan + R"(}, "workload": {"sequence_length": 512, "micro_batch": 1, "global_batch": )" +
         std::to_string(batch) + "}}";
}

}  // namespace

TEST_CASE("a search varies any key of a plan") {
  const test::Scratch scratch;
  const std::string small = test::scenario_file("smoke/train-small.json");
  for (const char* key : {R"("/plan/clip": [1, 0])", R"("/plan/precision/gemm": ["bf16", "fp8"])"}) {
    INFO(key);
    const std::string file = scratch.write("s.json", space(std::string(kOnePlan) + ", " + key));
    const Document found = searched(small + " --space " + file);
    CHECK(found.root.find("search")->find("plans")->items.size() >= 2);
  }
}

// Buffers of its shards are for two of the four.
TEST_CASE("a search over a framework's plans writes what the framework says into each") {
  const test::Scratch scratch;
  const std::string scenario = scratch.write("t.json", small_mixtral(R"("framework": "torchtitan")", 16));
  const std::string file =
      scratch.write("s.json", space(std::string(kOnePlan) + R"(, "/plan/dp/zero": [0, 1, 2, 3])"));
  const Document found = searched(scenario + " --space " + file + " --exhaustive");
  const auto& plans = found.root.find("search")->find("plans")->items;
  std::set<int> tried;
  for (const Value& plan : plans) {
    const Value& settings = *plan.find("settings");
    const int zero = static_cast<int>(settings.find("/plan/dp/zero")->number);
    if (!tried.insert(zero).second) continue;
    std::string changes;
    for (std::size_t i = 0; i < settings.keys.size(); ++i)
      changes += fmt::format(" --set '{}={}'", settings.keys[i], to_json(settings.items[i]));
    INFO(changes);
    const test::Finished run = test::run_moebius("run " + scenario + " --json --detail alpha-beta" + changes);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(plan.find("alpha_beta")->find("step_time_s")->number ==
          Approx(parse_document(run.out, "out").root.find("step_time_s")->number));
  }
  CHECK(tried.size() == 4);
}

// One replica of attention, eight of each expert: its states may be cut.
TEST_CASE("a search shards states where experts alone have replicas") {
  const test::Scratch scratch;
  const std::string scenario =
      scratch.write("t.json", small_mixtral(R"("tp": {"attention": 8, "sequence_parallel": true})", 8));
  const std::string file = scratch.write(
      "s.json",
      space(
          R"("/plan/tp/attention": [8], "/plan/tp/expert": [1], "/plan/ep/degree": [1], "/plan/pp/degree": [1],
      "/plan/cp": [1], "/workload/micro_batch": [1], "/plan/dp/zero": [0, 1])"));
  bool sharded = false;
  for (const Value& plan :
       searched(scenario + " --space " + file + " --exhaustive").root.find("search")->find("plans")->items)
    sharded |= plan.find("settings")->find("/plan/dp/zero")->number == 1;
  CHECK(sharded);
}

TEST_CASE("adapters of some stages alone are trained with their optimizer on the host") {
  const test::Scratch scratch;
  const std::string file = scratch.write("m.json", R"({"moebius": 1, "kind": "training", "name": "x",
    "model": {"base": "deepseek-v2-lite"},
    "cluster": {"pools": [{"name": "t", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 1}],
      "fabric": {"type": "multi-plane-fat-tree", "planes": 8, "nic": "400 Gb/s"}},
    "plan": {"pp": {"degree": 2, "slicing": [1, 26]}, "ep": {"degree": 4}, "offload": {"optimizer": true},
      "memory": "report"},
    "workload": {"sequence_length": 256, "global_batch": 16, "lora": {"rank": 8, "targets": ["expert_up"]}}})");
  const test::Finished run = test::run_moebius("run " + file);
  INFO(run.err);
  CHECK(run.exit_code == 0);
}

TEST_CASE("recorded loads that name some experts only are those of the others at nothing") {
  const test::Scratch scratch;
  std::string rows = "step,layer,expert,tokens\n";
  for (int layer = 1; layer < 4; ++layer) rows += "0," + std::to_string(layer) + ",0,256\n";
  const std::string table = scratch.write("one.csv", rows);
  const test::Finished run = test::run_moebius("run " + test::scenario_file("smoke/train-small.json") +
                                               " --set /workload/steps=1 --set '/workload/experts=" +
                                               R"({"popularity": {"recorded": ")" + table + "\"}}'");
  INFO(run.err);
  CHECK(run.exit_code == 0);
}

// FP8 products beside FP4 experts read copies of their own format.
TEST_CASE("what is dispatched in one format and multiplied in another is quantised to both") {
  const test::Scratch scratch;
  const std::string dump = scratch.path("dump");
  const test::Finished run =
      test::run_moebius("run " + test::scenario_file("smoke/serve-small.json") +
                        " --set /cluster/pools/0/accelerator=b200 --set /plan/precision/gemm=fp8 --set "
                        "/plan/precision/experts=fp4 --dump " +
                        dump);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(test::text_of(dump), Catch::Contains("quantise fp8") && Catch::Contains("quantise fp4"));
}
