// What /plan/framework sets of a plan that does not say it.
#include "workloads/serving/frameworks.h"

#include <fmt/format.h>

#include "hw/catalog.h"
#include "models/model.h"
#include "workloads/scenario/scenario.h"

#include "tests/catch.h"

namespace moebius {
namespace {

// Qwen3-30B-A3B on two servers of a pool each.
Scenario serving(std::string_view plan) {
  static const Catalog catalog;
  static const ModelCatalog models;
  const std::string text = fmt::format(
      R"({{"moebius": 1, "kind": "serving", "name": "s", "model": "qwen3-30b-a3b",
    "cluster": {{"pools": [{{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}},
                           {{"name": "b", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}}],
                "fabric": {{"type": "rail-optimised-clos"}}}},
    "plan": {{"steps": "surface", {}}},
    "workload": {{"trace": {{"generator": "batch", "requests": 16, "input": 512, "output": 16}}}}}})",
      plan);
  return read_scenario(parse_document(text, "s.json"), catalog, models);
}

std::string replicas(std::string_view framework, std::string_view more) {
  return fmt::format(
      R"("framework": "{}", "separation": {{"prefill_decode": true}},
         "prefill": {{"pool": "a", "attention": {{"dp": 8}}, "ep": {{"degree": 8{}}}}},
         "decode": {{"pool": "b", "attention": {{"dp": 8}}, "ep": {{"degree": 8}}}})",
      framework, more);
}

TEST_CASE("every framework but none says where its defaults stand") {
  REQUIRE(frameworks().front().name == "none");
  for (const Framework& framework : frameworks().subspan(1)) {
    INFO(framework.name);
    CHECK(!framework.source.empty());
    CHECK(framework.token_budget > 0);
  }
}

TEST_CASE("tokens travel to experts as the framework sends them, in both phases, unless the plan says how") {
  for (const Framework& framework : frameworks()) {
    INFO(framework.name);
    const ServicePlan service = serving(replicas(framework.name, "")).service;
    REQUIRE(service.phases.size() == 2);
    CHECK(service.phases[0].plan.prefill_exchange == framework.dispatch);
    CHECK(service.phases[1].plan.decode_exchange == framework.dispatch);
    const ServicePlan told = serving(replicas(framework.name, R"(, "dispatch": "deepep")")).service;
    CHECK(told.phases[0].plan.prefill_exchange == Algorithm::kHierarchical);
    CHECK(told.phases[1].plan.decode_exchange == framework.dispatch);
  }
}

TEST_CASE("frameworks quantise FP8 in a kernel of its own, unless the plan says that the op before does") {
  const auto fused = [](std::string_view framework, std::string_view more) {
    const std::string plan = replicas(framework, "") + std::string(more);
    return serving(plan).service.phases[0].plan.fused_quantise;
  };
  constexpr std::string_view kEight = R"(, "precision": {"gemm": "fp8"})";
  for (const Framework& framework : frameworks()) {
    INFO(framework.name);
    CHECK(fused(framework.name, ""));  // of BF16 nothing is quantised
    CHECK(fused(framework.name, kEight) == !framework.fused);
    CHECK(fused(framework.name, R"(, "precision": {"gemm": "fp8"}, "fused_quantise": true)"));
  }
}

TEST_CASE("experts on a pool of their own are sent what they are asked for, not gathered") {
  const ServicePlan service =
      serving(R"("framework": "vllm", "separation": {"attention_ffn": true}, "phase": "decode",
                 "decode": {"attention": {"pool": "a", "dp": 8}, "experts": {"pool": "b", "ep": 8}})")
          .service;
  REQUIRE(service.phases.size() == 1);
  CHECK(service.phases[0].plan.decode_exchange == Algorithm::kAuto);
}

TEST_CASE("each of several pools batches as the framework does") {
  for (const Framework& framework : frameworks()) {
    INFO(framework.name);
    const ServicePlan service =
        serving(
            fmt::format(R"("framework": "{}", "pools": [{{"pool": "a"}}, {{"pool": "b", "max_batch": 3}}])",
                        framework.name))
            .service;
    REQUIRE(service.pools.size() == 2);
    CHECK(service.pools[0].max_batch == framework.max_batch);
    CHECK(service.pools[1].max_batch == 3);
    for (const PoolKeys& pool : service.pools) {
      CHECK(pool.token_budget == framework.token_budget);
      CHECK(pool.batching == framework.batching);
      CHECK(pool.chunked == framework.chunked);
    }
  }
}

}  // namespace
}  // namespace moebius
