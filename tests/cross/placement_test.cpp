// Placement as a user asks for it: carried out by the simulator, against naive order.
#include <catch2/catch.hpp>

#include <cmath>

#include "hw/document.h"
#include "tests/process.h"
#include "tests/scenario_file.h"

namespace {

using namespace moebius;

const std::string kFragmented = test::scenario_file("study/placement-fragmented.json");

double number_at(const Value& value, const std::string& key) {
  const Value* found = value.find(key);
  REQUIRE(found != nullptr);
  return found->number;
}

Document json_of(const std::string& arguments) {
  const test::Finished finished = test::run_moebius(arguments);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return parse_document(finished.out, "out");
}

double step_of(const std::string& arguments) {
  return number_at(json_of("run " + arguments + " --json").root, "step_time_s");
}

}  // namespace

TEST_CASE("on fragmented clusters no placement is slower than naive order") {
  const Document found = json_of("place --fragmented 4 --seed 301 --json");
  const Value& cases = *found.root.find("cases");
  REQUIRE(cases.items.size() == 4);
  for (const Value& one : cases.items) {
    INFO(one.find("name")->text);
    CHECK(number_at(one, "placed_step_time_s") <= number_at(one, "naive_step_time_s"));
  }
}

TEST_CASE("place refuses what it cannot place and what it would not write") {
  const auto collective = test::run_moebius("place " + test::scenario_file("smoke/allreduce-1024.json"));
  CHECK(collective.exit_code == 2);
  CHECK(collective.err.find("expected a training scenario to place, found \"collective\"") !=
        std::string::npos);
  const test::Scratch scratch;
  const auto fragmented = test::run_moebius("place --fragmented 3 --out " + scratch.path("x.json"));
  CHECK(fragmented.exit_code == 2);
  CHECK(fragmented.err.find("--out") != std::string::npos);
  const auto list = test::run_moebius("list");
  CHECK(list.exit_code == 2);
  CHECK(list.err.find("expected one of accelerators, ") != std::string::npos);
}

TEST_CASE("what place writes runs as fast as it says and faster than naive order") {
  const test::Scratch scratch;
  const Document found = json_of("place " + kFragmented + " --json --out " + scratch.path("placed.json"));
  const double placed = number_at(found.root.find("finalists")->items.front(), "step_time_s");
  CHECK(step_of(scratch.path("placed.json")) == Approx(placed).epsilon(1e-12));
  CHECK(step_of(kFragmented + " --set /plan/placement/order=naive") ==
        Approx(number_at(*found.root.find("naive"), "step_time_s")).epsilon(1e-12));
  CHECK(number_at(found.root, "gain") > 1.1);
}

// 32 ranks that share experts, on racks of 36 devices: whole groups of the first 32 of each.
TEST_CASE("place lays groups into scale-up domains, and keeps what --set changed") {
  const test::Scratch scratch;
  const std::string scenario =
      scratch.write("racks.json", R"({"moebius": 1, "kind": "training", "name": "racks",
    "model": {"base": "qwen3-30b-a3b", "layers": 4},
    "cluster": {"pools": [{"name": "gpu", "accelerator": "gb200-nvl72",
                           "node": {"base": "gb200-nvl72", "accelerators": 36, "nics": 36}, "nodes": 2}],
                "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
    "plan": {"ep": {"degree": 32}, "dp": {"degree": 64, "zero": 1}, "memory": "report"},
    "workload": {"sequence_length": 2048, "global_batch": 64, "micro_batch": 1}})");
  const Document found = json_of("place " + scenario + " --set /workload/global_batch=128 --json --out " +
                                 scratch.path("placed.json"));
  CHECK(number_at(found.root, "gain") > 1.2);
  const Document placed = json_of("run " + scratch.path("placed.json") + " --json");
  CHECK(number_at(placed.root, "step_time_s") ==
        Approx(number_at(found.root.find("finalists")->items.front(), "step_time_s")).epsilon(1e-12));
  // A placement that --set names gives way to those that are tried; ranks are counted from the devices named.
  CHECK(number_at(json_of("place " + scenario + " --set '/plan/placement={}' --json").root, "gain") > 1.2);
  CHECK(number_at(json_of("run " + scenario + " --set '/plan/dp={}' --json --set " +
                          "'/plan/placement/devices=0-31, 36-67'")
                      .root,
                  "devices") == 64);
}

TEST_CASE("ranks named in the order of devices are those that are not placed at all") {
  const std::string scenario = test::scenario_file("smoke/train-tensor.json");
  const double plain = step_of(scenario + " --set /plan/fold=false");
  CHECK(step_of(scenario + " --set /plan/placement/order=naive --set /plan/fold=false") == plain);
  CHECK(step_of(scenario + " --set /plan/placement/devices=0-7") == plain);
  CHECK(step_of(scenario + " --set /plan/placement/ranks=0-7") == plain);
}

// 32 of the 72 devices of each of two racks: one rank of each stage and kind is simulated.
TEST_CASE("ranks on the same devices of every domain fold, and take as long as ranks by themselves") {
  const std::string run = "run " +
                          test::scenario_file("validate/megatron-bridge/llama-3-70b-gb300-fp8.json") +
                          " --set /cluster/pools/0/nodes=2 --json --set /plan/placement/devices=";
  const auto folds = [](const Document& ran) {
    return ran.root.find("provenance")->find("folding") == nullptr;
  };
  const Document folded = json_of(run + "'0-31, 72-103'");
  const Document unfolded = json_of(run + "'0-31, 72-103' --set /plan/fold=false");
  CHECK(number_at(folded.root, "step_time_s") ==
        Approx(number_at(unfolded.root, "step_time_s")).epsilon(1e-9));
  CHECK(folds(folded));
  CHECK(!folds(json_of(run + "'0-31, 72-102, 104'")));
}

TEST_CASE("a job is split over chips of two kinds at least as well as by the plan that it came with") {
  const test::Scratch scratch;
  const std::string scenario =
      scratch.write("mixed.json", R"({"moebius": 1, "kind": "training", "name": "small",
    "model": {"base": "llama-3.1-8b", "layers": 16},
    "cluster": {"pools": [{"name": "gpu", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 1},
                          {"name": "npu", "accelerator": "ascend-910b", "node": "ascend-910b-8", "nodes": 1}],
                "fabric": {"type": "rail-optimised-clos-roce"}, "forwarding": "cpu"},
    "plan": {"tp": {"attention": 8, "sequence_parallel": true}, "pp": {"degree": 2, "slicing": "dynamic"}},
    "workload": {"sequence_length": 4096, "global_batch": 32}})");
  const std::string split = scratch.path("split.json");
  const Document found = json_of("split " + scenario + " --finalists 1 --json --out " + split);
  const double best = number_at(found.root.find("splits")->items.front(), "tokens_per_s");
  CHECK(best >= number_at(found.root, "as_given_tokens_per_s"));
  CHECK(number_at(found.root, "efficiency") > 0.5);
  const Document run = json_of("run " + split + " --json");
  CHECK(number_at(run.root, "tokens_per_s") == Approx(best).epsilon(1e-9));
}
