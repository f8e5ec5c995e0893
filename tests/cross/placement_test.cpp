// Placement as a user asks for it: carried out by the simulator, against naive order.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "hw/document.h"
#include "tests/process.h"
#include "tests/scenario_file.h"
#include "workloads/report/wrapped_text.h"

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

// Its model stands beside it; of its pipeline no split may keep the stages a rank.
std::string write_mixed(const test::Scratch& scratch, const std::string& name, int nodes, int batch) {
  scratch.write("config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 2048, "num_hidden_layers": 8, "vocab_size": 32000, "tie_word_embeddings": false,
    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 8192,
    "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "hidden_act": "silu"})");
  const std::string first = R"({"moebius": 1, "kind": "training", "name": "small",
    "model": {"hf_config": "config.json"},
    "cluster": {"pools": [{"name": "gpu", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": )";
  const std::string then = R"(},
                          {"name": "old", "accelerator": "a800-sxm", "node": "hgx-8", "nodes": 1}],
                "fabric": {"type": "clos-roce"}},
    "plan": {"pp": {"degree": 2, "schedule": "interleaved", "virtual": 2}, "dp": {"zero": 1},
             "memory": "report"},
    "workload": {"sequence_length": 1024, "micro_batch": 1, "global_batch": )";
  return scratch.write(name, first + std::to_string(nodes) + then + std::to_string(batch) + "}}");
}

}  // namespace

TEST_CASE("on fragmented clusters no placement is slower than naive order") {
  const Document found = json_of("place --fragmented 4 --seed 301 --json");
  const Value& cases = *found.root.find("cases");
  for (const char* key : {"kind", "executor", "detail", "seed", "provenance", "uncertainty", "wall_s",
                          "cpu_s", "max_rss_bytes"})
    CHECK(found.root.find(key) != nullptr);
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

TEST_CASE("what --set changes of a job it is split with, and what is written keeps it") {
  const test::Scratch scratch;
  const Document meant = json_of("split " + write_mixed(scratch, "a.json", 2, 48) + " --finalists 1 --json");
  std::filesystem::create_directory(scratch.path("out"));
  const Document found = json_of("split " + write_mixed(scratch, "b.json", 1, 24) +
                                 " --set /cluster/pools/0/nodes=2 --set /workload/global_batch=48" +
                                 " --finalists 1 --json --out " + scratch.path("out/split.json"));
  const double best = number_at(found.root.find("splits")->items.front(), "tokens_per_s");
  CHECK(best == number_at(meant.root.find("splits")->items.front(), "tokens_per_s"));
  CHECK(number_at(found.root, "sum_of_parts_tokens_per_s") ==
        number_at(meant.root, "sum_of_parts_tokens_per_s"));
  const Document run = json_of("run " + scratch.path("out/split.json") + " --json");
  CHECK(number_at(run.root, "tokens_per_s") == Approx(best).epsilon(1e-9));
}

TEST_CASE("a placed job that --set changed names its files from where it is written") {
  const test::Scratch scratch;
  const std::string pools = R"([{"name": "gpu", "accelerator": "h800-sxm", "node": "hgx-8", "nodes": 2}])";
  const std::string scenario = write_mixed(scratch, "s.json", 1, 48);
  std::filesystem::create_directory(scratch.path("out"));
  const std::string placed = scratch.path("out/placed.json");
  const Document found = json_of("place " + scenario + " --set '/cluster/pools=" + pools +
                                 "' --finalists 1 --json --out " + placed);
  CHECK(step_of(placed) ==
        Approx(number_at(found.root.find("finalists")->items.front(), "step_time_s")).epsilon(1e-12));
}

// A product that a table of one's own says to take 400 us, more than twice what the shipped one does.
TEST_CASE("splits go by the tables of --data") {
  const test::Scratch scratch;
  std::filesystem::create_directory(scratch.path("profiles"));
  scratch.write("profiles/h800-sxm.json", R"({"format": "moebius-profile-1", "accelerator": "h800-sxm",
    "reference": {"architecture": "hopper", "cores": 132, "general_cores": 0, "independent_engines": false,
      "memory_rate": 3.35e12, "memory_efficiency": 0.9, "l2": 52428800, "clock": 1.83e9, "power": 700,
      "kernel_floor": 2.55e-6, "peak": {"bf16": 9.89e14, "fp8": 1.979e15}},
    "sources": [{"key": "LAB", "text": "a bench", "licence": "none", "date": "2026-01-01"}],
    "tables": [{"name": "dense", "kinds": ["gemm"], "dtype": "bf16", "stack": "lab-1", "source": "LAB",
      "cores": 132, "clocks": "burst", "values": "measured", "in_sample": false, "note": "",
      "site": ["n", "k"], "axes": [{"key": "m", "points": [2048, 4096]}],
      "held_out": {"rows": 0, "mean": 0, "median": 0, "p90": 0, "worst": 0}, "rejected": [],
      "sites": [[4096, 4096]], "microseconds": ["200 400"]}]})");
  const Document found = json_of("split " + write_mixed(scratch, "s.json", 1, 48) +
                                 " --finalists 1 --json --data " + scratch.path(""));
  const auto product = [](const Document& matrices) {
    const Value& rows = *matrices.root.find("matrices")->items.front().find("rows");
    const auto row = std::find_if(rows.items.begin(), rows.items.end(), [](const Value& one) {
      return one.find("op")->text == "gemm bf16" && one.find("shape")->text == "4096 x 4096 x 4096";
    });
    REQUIRE(row != rows.items.end());
    return number_at(*row, "time_s");
  };
  CHECK(product(found) == product(json_of("matrix h800-sxm --json --data " + scratch.path(""))));
  const Document shipped = json_of("matrix h800-sxm --json");
  CHECK(product(found) > 2 * product(shipped));
  for (const char* key : {"kind", "executor", "detail", "seed", "provenance", "uncertainty", "wall_s"})
    CHECK(shipped.root.find(key) != nullptr);
  CHECK(shipped.root.find("scenario")->text == "h800-sxm by rail-optimised-clos-roce");
}

TEST_CASE("what is printed for people fits in a terminal") {
  const std::string moe = test::scenario_file("smoke/moe-64-h800.json");
  const std::string known = test::scenario_file("validate/serving-infersim/qwen3-8b-decode.json");
  const std::vector<std::string> commands{
      "run " + moe + " --explain", "check " + test::scenario_file("smoke/emulate-64.json"),
      "matrix h800-sxm ascend-910b kunlun-p800", "validate " + known, "place " + kFragmented};
  for (const std::string& command : commands) {
    const test::Finished finished = test::run_moebius(command);
    CHECK(finished.exit_code == 0);
    std::istringstream lines(finished.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(command << ": " << line);
      CHECK(text_width(line) <= kTextColumns);
    }
  }
}
