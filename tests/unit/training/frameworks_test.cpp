// What /plan/framework sets of a training plan that does not say it.
#include "workloads/training/frameworks.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "hw/catalog.h"
#include "hw/error.h"
#include "workloads/scenario/framework_settings.h"
#include "workloads/scenario/scenario.h"

#include "tests/catch.h"

namespace moebius {
namespace {

Document training(std::string_view plan, std::string_view model = "qwen3-30b-a3b") {
  const std::string text = fmt::format(
      R"({{"moebius": 1, "kind": "training", "name": "s", "model": "{}",
    "cluster": {{"pools": [{{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 2}}],
                "fabric": {{"type": "rail-optimised-clos"}}}},
    "plan": {{"memory": "report", {}}},
    "workload": {{"sequence_length": 4096, "global_batch": 32}}}})",
      model, plan);
  return parse_document(text, "s.json");
}

Scenario read(const Document& document) {
  static const Catalog catalog;
  static const ModelCatalog models;
  return read_scenario(document, catalog, models);
}

std::map<std::string, std::string> values(const Scenario& scenario) {
  std::map<std::string, std::string> all;
  for (const Setting& setting : scenario.settings)
    if (setting.pointer != "/plan/framework") all[setting.pointer] = setting.value;
  return all;
}

}  // namespace

TEST_CASE("a training framework is the keys that it sets, whatever else a plan says") {
  CHECK(training_frameworks().front().name == "none");
  for (const TrainingFramework& framework : training_frameworks()) {
    for (const char* more :
         {"", R"(, "dp": {"zero": 0})", R"(, "dp": {"zero": 3})", R"(, "precision": {"gemm": "fp8"})",
          R"(, "cp": 2)", R"(, "pp": {"degree": 2}, "tp": {"attention": 2, "sequence_parallel": true})",
          R"(, "clip": 0, "loss": "fused")"})
      for (const char* model : {"qwen3-30b-a3b", "llama-3.1-8b"}) {
        const bool rings = std::string_view(more).find("cp") != std::string_view::npos;
        if (rings && framework.plan.attention == AttentionKernels::kUnfused) continue;  // they had none
        INFO(framework.name << more << " " << model);
        const Document said = training(fmt::format(R"("framework": "{}"{})", framework.name, more), model);
        const Scenario by_name = read(said);
        const Document document = without_framework(said, by_name.model);
        const Scenario by_keys = read(document);
        CHECK(values(by_name) == values(by_keys));
        CHECK(framework_settings(document, by_name.model).empty());
      }
  }
}

TEST_CASE("kernels of biases are a framework's where a model has such biases") {
  const auto biases = [](const char* framework, const char* model) {
    return read(training(fmt::format(R"("framework": "{}")", framework), model)).plan.biases;
  };
  CHECK(biases("megatron-lm-2022", "llama-3.1-8b") == BiasKernels::kFused);
  CHECK(biases("megatron-lm-2022", "qwen2.5-32b") == BiasKernels::kApart);
  CHECK(biases("mindspeed", "qwen2.5-32b") == BiasKernels::kApart);
  CHECK(biases("torchtitan", "qwen2.5-32b") == BiasKernels::kSummedApart);
  CHECK(biases("megatron-core", "qwen2.5-32b") == BiasKernels::kFused);
}

TEST_CASE("tokens go to experts on other ranks by a framework's library unless another way is asked for") {
  const auto exchange = [](const char* framework, const char* keys, const char* model = "qwen3-30b-a3b") {
    return read(training(fmt::format(R"("framework": "{}"{})", framework, keys), model)).plan.exchange;
  };
  const char* apart = R"(, "ep": {"degree": 8})";
  CHECK(exchange("none", apart) == Algorithm::kAuto);
  for (const char* framework : {"megatron-core", "nemo", "torchtitan", "mindspeed"}) {
    CHECK(exchange(framework, apart) == Algorithm::kLibrary);
    CHECK(exchange(framework, R"(, "ep": {"degree": 8, "dispatch": "deepep"})") == Algorithm::kHierarchical);
    CHECK(exchange(framework, "") == Algorithm::kAuto);  // they stay on the rank
  }
  CHECK(exchange("nemo", "", "llama-3.1-8b") == Algorithm::kAuto);
  const Document said = training(R"("framework": "nemo", "ep": {"degree": 8})");
  const Scenario by_name = read(said);
  CHECK(values(by_name) == values(read(without_framework(said, by_name.model))));
}

TEST_CASE("MaxText fills the buffers of experts by one-hot products where their capacity is limited") {
  const auto plan = [](const char* framework, const char* experts) {
    return read(training(fmt::format(R"("framework": "{}", "ep": {{{}}})", framework, experts))).plan;
  };
  for (const char* experts : {R"("degree": 8, "capacity": 1.25)", R"("capacity": 2)"}) {
    const TrainingPlan limited = plan("maxtext", experts);
    CHECK(limited.expert_buffers == ExpertBuffers::kOneHot);
    CHECK(limited.capacity_of_sequence);
    CHECK(plan("megatron-core", experts).expert_buffers == ExpertBuffers::kRows);
    const Document said = training(fmt::format(R"("framework": "maxtext", "ep": {{{}}})", experts));
    CHECK(values(read(said)) == values(read(without_framework(said, read(said).model))));
  }
  CHECK(plan("maxtext", R"("degree": 8)").expert_buffers == ExpertBuffers::kRows);
  CHECK_FALSE(plan("maxtext", R"("degree": 8)").capacity_of_sequence);
  CHECK(plan("maxtext", R"("degree": 8, "capacity": 2, "dispatch": "deepep")").expert_buffers ==
        ExpertBuffers::kRows);
  CHECK(plan("maxtext", R"("degree": 8, "capacity": 2, "buffers": "padded")").expert_buffers ==
        ExpertBuffers::kPadded);
}

TEST_CASE("every training framework but none sets something and says where it stands") {
  for (const TrainingFramework& framework : training_frameworks().subspan(1)) {
    INFO(framework.name);
    CHECK(!framework.source.empty());
    const Document document = training(fmt::format(R"("framework": "{}")", framework.name));
    CHECK(framework_settings(document, read(document).model).size() >= 3);
  }
}

TEST_CASE("what a framework says is refused in its name") {
  const auto refusal = [](std::string_view plan) {
    try {
      read(training(plan));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal(R"("framework": "nemo", "pp": {"degree": 16, "schedule": "interleaved", "virtual": 2})") ==
        "s.json:4: /plan/pp/slicing, of framework \"nemo\": 48 layers do not divide over 32 stages");
  CHECK(refusal(R"("framework": "nemo",
      "pp": {"degree": 16, "schedule": "interleaved", "virtual": 2, "slicing": "even"})") ==
        "s.json:5: /plan/pp/slicing: 48 layers do not divide over 32 stages");
  CHECK(refusal(R"("framework": "nemo", "pp": {"degree": 2, "schedule": "dualpipe"})").empty());
}

TEST_CASE("keys that are given count instead of a framework's") {
  const auto plan = [](std::string_view keys, std::string_view model = "qwen3-30b-a3b") {
    return read(training(keys, model)).plan;
  };
  const TrainingPlan nemo = plan(R"("framework": "nemo")");
  CHECK(nemo.zero == 1);
  CHECK(nemo.overlap_weights);
  CHECK(nemo.gradients == DType::kBf16);
  CHECK(nemo.expert_by_expert);
  CHECK(nemo.context == ContextKind::kAllGather);  // one rank has a sequence
  CHECK_FALSE(plan(R"("framework": "nemo")", "llama-3.1-8b").expert_by_expert);
  CHECK(plan(R"("framework": "nemo", "precision": {"gradients": "fp32"})").gradients == DType::kFp32);
  CHECK_FALSE(plan(R"("framework": "nemo", "dp": {"zero": 0})").overlap_weights);
  CHECK(plan(R"("framework": "nemo", "cp": 2)").context == ContextKind::kRing);
  CHECK(plan(R"("framework": "fsdp")").shard_buffers == ShardBuffers::kFlat);
  CHECK(plan(R"("framework": "fsdp", "dp": {"zero": 1})").shard_buffers == ShardBuffers::kInPlace);
  const char* rows = R"(, "tp": {"attention": 2, "sequence_parallel": true})";
  CHECK(plan(fmt::format(R"("framework": "torchtitan"{})", rows), "llama-3.1-8b").gather_passes);
  CHECK_FALSE(plan(R"("framework": "torchtitan", "tp": {"attention": 2})", "llama-3.1-8b").gather_passes);
  CHECK_FALSE(plan(fmt::format(R"("framework": "megatron-core"{})", rows), "llama-3.1-8b").gather_passes);
  for (const char* framework : {"fsdp", "torchtitan", "maxtext", "megatron-core"}) {
    const char* full = R"("framework": "{}", "recompute": {{"policy": "full"{}}})";
    const auto stops = [&](const char* more) {
      return plan(fmt::format(fmt::runtime(full), framework, more), "llama-3.1-8b").recompute_stops;
    };
    CHECK(stops("") == (std::string_view(framework) != "megatron-core"));
    CHECK_FALSE(stops(R"(, "early_stop": false)"));
    CHECK_FALSE(plan(fmt::format(R"("framework": "{}")", framework), "llama-3.1-8b").recompute_stops);
  }
  CHECK_FALSE(plan(R"("framework": "megatron-lm-2021", "dp": {"zero": 2})").separate_accumulation);
  CHECK_FALSE(plan(R"("framework": "torchtitan")").half_weights);
  const TrainingPlan eight_bits = plan(R"("framework": "torchtitan", "precision": {"gemm": "fp8"})");
  CHECK(eight_bits.half_weights);
  CHECK(eight_bits.scaling == Scaling::kTensor);
}

}  // namespace moebius
