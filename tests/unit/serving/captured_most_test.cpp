// How far captured graphs go: what engines capture unless they are told otherwise, and which iterations have
// none.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "hw/catalog.h"
#include "models/model.h"
#include "workloads/job.h"
#include "workloads/scenario/scenario.h"
#include "workloads/service/engine.h"
#include "workloads/service/rules.h"

#include "tests/catch.h"

namespace moebius {
namespace {

// On one server.
Scenario serving(std::string_view plan, std::string_view model = "qwen3-8b") {
  static const Catalog catalog;
  static const ModelCatalog models;
  const std::string text = fmt::format(
      R"({{"moebius": 1, "kind": "serving", "name": "s", "model": "{}",
    "cluster": {{"pools": [{{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}}],
                "fabric": {{"type": "rail-optimised-clos"}}}},
    "plan": {{"steps": "surface", {}}},
    "workload": {{"trace": {{"generator": "batch", "requests": 16, "input": 512, "output": 16}}}}}})",
      model, plan);
  return read_scenario(parse_document(text, "s.json"), catalog, models);
}

int captured(std::string_view plan, std::string_view model = "qwen3-8b") {
  return serving(plan, model).service.phases.at(0).plan.captured;
}

InstanceRules rules_of(std::string_view plan) {
  const Scenario scenario = serving(plan);
  const ServicePool pool = service_pool(scenario, scenario.service.phases.at(0));
  return pool_rules(scenario.service, pool).instance;
}

StepShape decoding(std::int32_t sequences) {
  StepShape shape;
  shape.decode_sequences = shape.decode_tokens = sequences;
  return shape;
}

bool eager(const InstanceRules& rules, const std::vector<std::int32_t>& sequences) {
  std::vector<StepShape> shapes;
  for (const std::int32_t of : sequences) shapes.push_back(decoding(of));
  return is_eager(rules, shapes);
}

constexpr std::string_view kOne = R"("decode": {"attention": {"dp": 1, "tp": 1}})";
constexpr std::string_view kEight = R"("decode": {"attention": {"dp": 1, "tp": 8}})";
constexpr std::string_view kShared = R"("decode": {"attention": {"dp": 8}, "ep": {"degree": 8}})";

std::string of(std::string_view framework, std::string_view decode, std::string_view scheduler = "{}") {
  return fmt::format(R"("framework": "{}", {}, "scheduler": {})", framework, decode, scheduler);
}

TEST_CASE("graphs end where the framework lets them end, or where the plan does") {
  CHECK(captured(of("vllm", kOne)) == 512);
  CHECK(captured(of("vllm-v0", kOne)) == 256);
  CHECK(captured(of("trtllm", kOne)) == kAllCaptured);
  CHECK(captured(of("none", kOne, R"({"launch": "graph"})")) == kAllCaptured);
  CHECK(captured(of("vllm", kOne, R"({"captured_most": 0})")) == kAllCaptured);
  CHECK(captured(of("sglang", kOne, R"({"captured_most": 24})")) == 24);
  CHECK(captured(of("vllm", kOne, R"({"launch": "kernel"})")) == 0);
}

// server_args.py: cuda_graph_max_bs by the memory of a device and tp_size, which counts replicas that share
// experts, too; those that share none are servers of one device each.
TEST_CASE("SGLang's graphs go as far as its devices' memory and number say") {
  CHECK(captured(of("sglang", kOne)) == 256);
  CHECK(captured(of("sglang", kEight)) == 512);
  CHECK(captured(of("sglang", kShared), "qwen3-30b-a3b") == 512);
  CHECK(captured(of("sglang", R"("decode": {"attention": {"dp": 8}})")) == 256);
  const Catalog catalog;
  const auto on = [&](const char* chip, int devices) {
    return captured_sequences(catalog.accelerator(chip).memory, devices);
  };
  CHECK(on("l40s", 1) == 32);
  CHECK(on("l40s", 4) == 160);
  CHECK(on("b200-sxm", 1) == 512);
}

// vLLM counts tokens: a sequence with a guess has two in an iteration.
TEST_CASE("an engine that counts tokens captures fewer sequences where these have guesses") {
  constexpr std::string_view kGuess =
      R"("decode": {"attention": {"dp": 8}, "ep": {"degree": 8},
                    "speculative": {"mtp": 1, "acceptance": 0.8}})";
  CHECK(captured(of("vllm", kGuess), "deepseek-v3") == 256);
  CHECK(captured(of("vllm", kGuess, R"({"captured_counts": "sequences"})"), "deepseek-v3") == 512);
  CHECK(captured(of("sglang", kGuess), "deepseek-v3") == 512);
}

TEST_CASE("where graphs end is shown as the engine reckons it") {
  const Scenario scenario = serving(of("sglang", kEight));
  const auto said =
      std::find_if(scenario.settings.begin(), scenario.settings.end(),
                   [](const Setting& setting) { return setting.pointer == "/plan/scheduler/captured_most"; });
  REQUIRE(said != scenario.settings.end());
  CHECK(said->value == "512");
}

// 512 MiB, 12,288 of a chunk, 2 a captured sequence, 128 a device of 81,559 (device_reserve.h).
TEST_CASE("what an engine keeps for graphs is of those that it is told to capture") {
  const Bytes memory = Catalog().accelerator("h100-sxm").memory;
  const DeviceReserve reserve{.always = 512, .per_prompt_token = 1.5, .per_captured = 2, .per_device = 128};
  CHECK(share_beside(reserve, memory, {1, 1, 1, 8192, 1024}) ==
        Approx(1 - (512 + 12288 + 2048 + 128) / 81559.0).margin(6e-4));
  CHECK(share_beside(reserve, memory, {1, 1, 1, 8192}) ==
        share_beside(reserve, memory, {1, 1, 1, 8192, 256}));
}

TEST_CASE("sizes of graphs go up to the most that may run, or to where graphs end") {
  const auto last = [](std::string_view framework, int most, std::string_view scheduler = "{}") {
    const std::string decode =
        fmt::format(R"("decode": {{"attention": {{"dp": 1, "tp": 1}}, "max_batch": {}}})", most);
    return rules_of(of(framework, decode, scheduler)).captured.back();
  };
  CHECK(last("sglang", 300) == 256);
  CHECK(last("sglang", 100) == 100);
  CHECK(last("sglang", 300, R"({"captured_most": 0})") == 300);
  CHECK(last("sglang", 300, R"({"captured_most": 90})") == 90);
}

// cuda_graph_config: 1 to 32, 64 and 128 sequences, and nobody adds the most that may run.
TEST_CASE("TensorRT-LLM captures single sizes, and fills up none, where it is told nothing") {
  using Sizes = std::vector<std::int32_t>;
  const Sizes sizes = captured_sizes(1, 32, 128);
  CHECK(sizes.size() == 34);
  CHECK(Sizes(sizes.end() - 4, sizes.end()) == Sizes{31, 32, 64, 128});
  constexpr std::string_view kHundred = R"("decode": {"attention": {"dp": 1, "tp": 1}, "max_batch": 100})";
  const InstanceRules exact =
      rules_of(of("trtllm", kHundred, R"({"captured_padding": false, "captured_most": 128})"));
  CHECK_FALSE(exact.fills_graphs);
  CHECK(exact.captured.back() == 64);
  CHECK_FALSE(eager(exact, {64}));
  CHECK(eager(exact, {63}));
  CHECK(eager(exact, {100}));
  const InstanceRules padded = rules_of(of("trtllm", kHundred));
  CHECK(padded.fills_graphs);
  CHECK(padded.captured == captured_sizes(8, 128, 100));
  CHECK_FALSE(eager(padded, {63}));
}

TEST_CASE("an iteration is replayed where its fullest replica has a graph") {
  InstanceRules rules;
  CHECK_FALSE(eager(rules, {1000}));  // nobody counts launches
  rules.captured = {1, 2, 4, 8};
  CHECK_FALSE(eager(rules, {3, 8}));
  CHECK(eager(rules, {1, 9}));
  std::vector<StepShape> mixed{decoding(9), decoding(1)};
  mixed[1].prefill_tokens = 100;  // what of it is replayed says its tokens (captured_prompts)
  CHECK_FALSE(is_eager(rules, mixed));
}

TEST_CASE("without padding replicas that share experts have graphs where all are of one captured size") {
  InstanceRules rules;
  rules.captured = {1, 2, 4, 8};
  rules.fills_graphs = false;
  CHECK_FALSE(eager(rules, {4, 4}));
  CHECK(eager(rules, {3, 3}));
  CHECK(eager(rules, {4, 2}));
  CHECK(eager(rules, {9, 9}));
  CHECK_FALSE(eager(rules, {1, 0}));  // who has nobody takes part with a row of nobody's
}

}  // namespace
}  // namespace moebius
