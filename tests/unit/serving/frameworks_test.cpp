// What /plan/framework sets of a plan that does not say it.
#include "workloads/serving/frameworks.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/catalog.h"
#include "models/model.h"
#include "workloads/scenario/scenario.h"
#include "workloads/service/engine.h"
#include "workloads/serving/system/host_pipeline.h"

#include "tests/catch.h"

namespace moebius {

using namespace literals;

namespace {

// On two servers of a pool each, the first one's chips given.
Scenario serving(std::string_view plan, std::string_view chip = "h100-sxm",
                 std::string_view model = "qwen3-30b-a3b") {
  static const Catalog catalog;
  static const ModelCatalog models;
  const std::string text = fmt::format(
      R"({{"moebius": 1, "kind": "serving", "name": "s", "model": "{}",
    "cluster": {{"pools": [{{"name": "a", "accelerator": "{}", "node": "hgx-8", "nodes": 1}},
                           {{"name": "b", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}}],
                "fabric": {{"type": "rail-optimised-clos"}}}},
    "plan": {{"steps": "surface", {}}},
    "workload": {{"trace": {{"generator": "batch", "requests": 16, "input": 512, "output": 16}}}}}})",
      model, chip, plan);
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

TEST_CASE("engines that launch experts by one call do so on each pool by its own device") {
  const auto once = [](std::string_view framework, const char* chip, std::string_view precision) {
    const std::string plan = replicas(framework, "") + std::string(precision);
    const Scenario scenario = serving(plan);
    return launches_experts_once(scenario.service.engine.expert_calls, scenario.service.phases[0].plan,
                                 Catalog().accelerator(chip));
  };
  constexpr std::string_view kEight = R"(, "precision": {"gemm": "fp8"})";
  CHECK(once("trtllm", "h100-sxm", ""));
  CHECK_FALSE(once("vllm", "b200-sxm", ""));
  CHECK(once("vllm", "b200-sxm", kEight));
  CHECK_FALSE(once("vllm", "h100-sxm", kEight));
  CHECK_FALSE(once("sglang", "rtx-pro-6000", kEight));
  CHECK(serving(replicas("trtllm", "")).service.phases[1].plan.one_expert_call);
  CHECK_FALSE(serving(replicas("vllm", "")).service.phases[1].plan.one_expert_call);
}

TEST_CASE("TensorRT-LLM's reductions norm in all models but dense ones that norm their heads") {
  const auto fused = [](std::string_view framework, std::string_view model) {
    const std::string plan = fmt::format(R"("framework": "{}", "pools": [{{"pool": "a"}}])", framework);
    return serving(plan, "h100-sxm", model).service.phases[0].plan.fused_reduction;
  };
  CHECK(fused("trtllm", "mixtral-8x7b"));
  CHECK(fused("trtllm", "qwen3-30b-a3b"));
  CHECK_FALSE(fused("trtllm", "qwen3-8b"));
  CHECK_FALSE(fused("vllm", "mixtral-8x7b"));
}

HostCosts host_of(std::string_view framework, std::string_view scheduler) {
  return serving(fmt::format(R"("framework": "{}", "pools": [{{"pool": "a"}}], "scheduler": {{{}}})",
                             framework, scheduler))
      .service.host;
}

// Of one iteration after many.
Time lasting(const HostCosts& costs, Time device, std::int64_t sequences) {
  HostLane lane(costs);
  const HostWork work{.sequences = sequences, .samples = sequences, .tokens = sequences};
  Time now, before;
  for (int i = 0; i < 100; ++i) before = now, now = lane.turn(now, device, work).end;
  return now - before;
}

TEST_CASE("what a framework's host takes hides beside iterations that are longer where it overlaps") {
  constexpr Time kLong = 10_ms, kShort = 50_us;
  for (const Framework& framework : frameworks()) {
    if (!framework.overlap) continue;
    INFO(framework.name);
    CHECK(!framework.profiled.empty());
    const HostCosts ahead = host_of(framework.name, "");
    const HostCosts waits = host_of(framework.name, R"("overlap": false)");
    const Time before = framework.host_per_iteration + framework.host_per_sequence * 64;
    CHECK(before > Time{});
    CHECK(lasting(ahead, kLong, 64) == kLong);
    CHECK(lasting(waits, kLong, 64) == kLong + before);
    // A small model at a tiny batch takes what the loop does.
    const Time loop =
        framework.host_per_iteration + framework.host_per_sequence + framework.host_per_submission;
    CHECK(lasting(ahead, kShort, 1) == std::max(kShort, loop));
    CHECK(lasting(waits, kShort, 1) >= std::max(kShort, loop));
  }
}

TEST_CASE("times of the host that a plan says count instead of the framework's, each by itself") {
  CHECK(host_of("none", "").takes_time() == false);
  CHECK(host_of("vllm", "").per_iteration == 1072_us);
  CHECK(host_of("vllm", "").per_submission == 811_us);
  CHECK(host_of("vllm", R"("host_per_iteration": "2 ms")").per_iteration == 2_ms);
  CHECK(host_of("vllm", R"("host_per_submission": "1 ms")").per_submission == 1_ms);
  CHECK(host_of("vllm", R"("sampling": "host")").per_submission == Time{});
  const HostCosts text = host_of("vllm", R"("host_overhead": {"per_token": "75 us"})");
  CHECK(text.per_iteration == 1072_us);
  CHECK(text.per_token == 75_us);
  const HostCosts loop = host_of("vllm", R"("host_overhead": {"per_iteration": "2 ms"})");
  CHECK(loop.per_iteration == 2_ms);
  CHECK(loop.per_sequence == Time{1'100});
  const HostCosts own = host_of("vllm", R"("host_overhead": "measured")");
  CHECK(own.per_iteration == Time{20});
  CHECK(own.per_submission == Time{});
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
    const Framework here = on_device(framework, Catalog().accelerator("h100-sxm"));
    REQUIRE(service.pools.size() == 2);
    CHECK(service.pools[0].max_batch == here.max_batch);
    CHECK(service.pools[1].max_batch == 3);
    for (const PoolKeys& pool : service.pools) {
      CHECK(pool.token_budget == here.token_budget);
      CHECK(pool.batching == framework.batching);
      CHECK(pool.chunked == framework.chunked);
    }
  }
}

// vLLM, arg_utils.py: 70 GiB, and no A100; SGLang, server_args.py: 35, 60 and 160 GB.
TEST_CASE("engines take smaller iterations on devices with less memory") {
  const Catalog catalog;
  const auto on = [&](std::string_view name, const char* chip) {
    for (const Framework& framework : frameworks())
      if (framework.name == name) return on_device(framework, catalog.accelerator(chip));
    return Framework{};
  };
  CHECK(on("vllm", "h100-sxm").token_budget == 8192);
  CHECK(on("vllm", "h100-sxm").max_batch == 1024);
  for (const char* chip : {"a100-sxm", "l40s"}) {
    CHECK(on("vllm", chip).token_budget == 2048);
    CHECK(on("vllm", chip).max_batch == 256);
  }
  CHECK(on("sglang", "b200-sxm").token_budget == 16384);
  CHECK(on("sglang", "h200-sxm").token_budget == 8192);
  CHECK(on("sglang", "l40s").token_budget == 4096);
  CHECK(on("trtllm", "l40s").token_budget == on("trtllm", "b200-sxm").token_budget);
}

// A share that is said is constant, unless its decay is said, too.
TEST_CASE("what is said of the reserve takes the place of what its framework does") {
  const auto said = [](std::string_view keys) {
    return serving(fmt::format(R"("framework": "sglang", "decode": {{"pool": "a", "attention": {{"dp": 8}}}},
                                   "scheduler": {{{}}})",
                               keys))
        .service;
  };
  const ServicePlan constant = said(R"("output_reserve": 0.4)");
  CHECK(constant.first_reserve == 0.4);
  CHECK(constant.reserve_decay == 0);
  const ServicePlan falls = said(R"("output_reserve": 0.4, "output_reserve_decay": 100)");
  CHECK(falls.first_reserve == 0.7);
  CHECK(falls.reserve_decay == 100);
  CHECK(said(R"("output_reserve": 0.8, "output_reserve_decay": 100)").first_reserve == 0.8);
  CHECK(said(R"("output_reserve_start": 0.5, "newcomer_reserve": 0)").newcomer_reserve == 0);
}

// server_args.py: fa3 on Hopper, trtllm_mla on Blackwell, aiter on CDNA, else triton.
TEST_CASE("SGLang absorbs prompts over latents as the attention of its chip does") {
  const Catalog catalog;
  for (const Framework& framework : frameworks()) {
    if (framework.name != "sglang") continue;
    const auto below = [&](const char* chip) {
      return absorbed_on(framework, catalog.accelerator(chip));
    };
    CHECK(below("h200-sxm") == 8192);
    for (const char* chip : {"b200-sxm", "mi300x"}) CHECK(below(chip) == 1);
    CHECK(below("a100-sxm") == kAlwaysAbsorbed);
  }
}

// Prompts on a B200, whose memory is more than that of the H100 that decodes.
TEST_CASE("prompts over latents absorb as the chips of their own pool do") {
  const std::vector<ServicePhase> apart = serving(replicas("sglang", ""), "b200-sxm").service.phases;
  REQUIRE(apart.size() == 2);
  CHECK(apart[0].plan.absorbed_below == 1);
  const char* pools = R"("framework": "sglang", "pools": [{"pool": "a", "attention": {"dp": 8}},
                                                          {"pool": "b", "attention": {"dp": 8}}])";
  const std::vector<ServicePhase> rows = serving(pools, "b200-sxm").service.phases;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].plan.absorbed_below == 1);
  CHECK(rows[1].plan.absorbed_below == 8192);
}

// server_args.py by hand, in MiB. H100 (81,559), chunks of 8,192: 512 + 12,288 + 2 x 256 + 128 alone, 2 x 512
// and 8 x 128 on eight; B200 (182,630): 512 + 24,576 + 1,024 + 1,024; eight attention replicas 8 x 512 x 4.5
// more.
TEST_CASE("SGLang leaves of a device what its chunks, captured sequences and devices take") {
  const Catalog catalog;
  const Framework& sglang = *std::find_if(frameworks().begin(), frameworks().end(),
                                          [](const auto& f) { return f.name == "sglang"; });
  const auto share = [&](const char* chip, int dp, int tp, int tokens) {
    return share_beside(sglang.reserve, catalog.accelerator(chip).memory, {dp, tp, 1, tokens});
  };
  CHECK(share("h100-sxm", 1, 1, 8192) == Approx(1 - 13440 / 81559.0).margin(6e-4));
  CHECK(share("h100-sxm", 1, 8, 8192) == Approx(1 - 14848 / 81559.0).margin(6e-4));
  CHECK(share("b200-sxm", 1, 8, 16384) == Approx(1 - 27136 / 182630.4).margin(6e-4));
  CHECK(share("b200-sxm", 8, 1, 16384) == Approx(1 - (27136 + 8 * 512 * 4.5) / 182630.4).margin(6e-4));
  CHECK(share("h200-sxm", 1, 1, 2048) == Approx(1 - 10240 / 143771.0).margin(6e-4));  // the least
  CHECK(share("h100-sxm", 64, 1, 8192) < 0);
  // Two stages of eight: 128 for each of sixteen devices.
  CHECK(share_beside(sglang.reserve, catalog.accelerator("h100-sxm").memory, {1, 8, 2, 8192}) ==
        Approx(1 - 15872 / 81559.0).margin(6e-4));
  CHECK_FALSE(frameworks().front().reserve.is_told());
}

// Replicas that share no experts are servers of their own; eight that do are one.
TEST_CASE("the share of a device that is shown is that of the servers that run") {
  const auto shown = [](std::string_view experts) {
    const Scenario scenario = serving(fmt::format(
        R"("framework": "sglang", "decode": {{"pool": "a", "attention": {{"dp": 8}}{}}})", experts));
    const auto said =
        std::find_if(scenario.settings.begin(), scenario.settings.end(),
                     [](const Setting& setting) { return setting.pointer == "/plan/cache/hbm/share"; });
    REQUIRE(said != scenario.settings.end());
    return said->value;
  };
  CHECK(shown("") == "0.835");
  CHECK(shown(R"(, "ep": {"degree": 8})") == "0.592");
}

TEST_CASE("SGLang's chunk is by the smallest device that serves, not by one that nothing uses") {
  const auto chunk = [](std::string_view pools) {
    return serving(fmt::format(R"("framework": "sglang", {})", pools), "b200-sxm").serving.token_budget;
  };
  const int large = chunk(R"("decode": {"pool": "a", "attention": {"dp": 8}, "ep": {"degree": 8}})");
  const int small = chunk(R"("decode": {"pool": "b", "attention": {"dp": 8}, "ep": {"degree": 8}})");
  CHECK(small == 8192);
  CHECK(large == 16384);
  CHECK(chunk(R"("pools": [{"pool": "a", "role": "prefill", "attention": {"dp": 8}},
                           {"pool": "b", "role": "decode", "attention": {"dp": 8}}])") == small);
  // Attention's own pool counts instead of its phase's, and that of experts beside it.
  CHECK(chunk(R"("decode": {"pool": "b", "attention": {"pool": "a", "dp": 8}, "ep": {"degree": 8}})") ==
        large);
  CHECK(chunk(R"("decode": {"pool": "a", "attention": {"dp": 8}, "experts": {"pool": "b"}},
                 "separation": {"attention_ffn": true})") == small);
}

TEST_CASE("engines gather logits before they choose tokens, and TensorRT-LLM admits what it need not evict") {
  for (const Framework& framework : frameworks()) {
    INFO(framework.name);
    const ServicePlan service = serving(replicas(framework.name, "")).service;
    const bool is_engine = framework.name != "none";
    CHECK((service.phases[1].plan.sampling == Sampling::kGathered) == is_engine);
    const double reserve = framework.name == "trtllm" ? 1 : framework.name == "sglang" ? 0.7 * 0.14 : 0;
    CHECK(service.output_reserve == Approx(reserve));
    CHECK(service.reserve_decay == (framework.name == "sglang" ? 600 : 0));
    CHECK(service.first_reserve == Approx(framework.name == "sglang" ? 0.7 : reserve));
    CHECK(service.newcomer_reserve == (framework.name == "sglang" ? 4096 : 0));
    const std::int64_t below = framework.name == "sglang" ? 8192 : is_engine ? 1 : 0;  // on H100
    for (const ServicePhase& phase : service.phases) CHECK(phase.plan.absorbed_below == below);
    const CollectiveSource reduces = serving(replicas(framework.name, "")).cluster->collectives;
    const std::string_view engine = framework.name.substr(0, framework.name.find('-'));  // of any version
    CHECK(to_string(reduces) == (is_engine ? engine : "sglang"));
  }
}

}  // namespace
// vLLM's post on 0.6.0: 38% of 13 ms a token are the device's.
TEST_CASE("vLLM before its V1 engine waits for its host between iterations, prompts before decoding") {
  for (const char* name : {"vllm", "vllm-v0"}) {
    const Scenario scenario = serving(replicas(name, ""));
    const ServicePlan& service = scenario.service;
    const bool old = std::string_view(name) == "vllm-v0";
    CHECK(service.host.overlapped != old);
    CHECK((service.host.per_iteration.ns > 7'000'000) == old);
    CHECK((service.phases[1].batching == BatchPolicy::kPrefillFirst) == old);
    CHECK(service.phases[0].chunked != old);
    CHECK(service.phases[1].plan.max_batch == (old ? 256 : 1024));
  }
}

TEST_CASE("graphs are captured for multiples of a step, and from a size on for twice as many each") {
  using Sizes = std::vector<std::int32_t>;
  CHECK(captured_sizes(8, 0, 32) == Sizes{1, 2, 4, 8, 16, 24, 32});
  CHECK(captured_sizes(8, 16, 300) == Sizes{1, 2, 4, 8, 16, 32, 64, 128, 256, 300});
  CHECK(captured_sizes(1, 0, 4) == Sizes{1, 2, 3, 4});
  CHECK(captured_sizes(64, 8, 64) == Sizes{1, 2, 4, 64});
}

}  // namespace moebius
