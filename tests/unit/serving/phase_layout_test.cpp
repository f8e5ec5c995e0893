// How pools are laid out where a plan says less than both phases need.
#include <algorithm>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "models/model.h"
#include "tests/process.h"
#include "workloads/job.h"
#include "workloads/scenario/scenario.h"
#include "workloads/service/experts.h"
#include "workloads/service/pool_text.h"
#include "workloads/service/rules.h"

namespace moebius {
namespace {

using ChangedKeys = std::vector<std::pair<const char*, const char*>>;

Scenario read(const std::string& file, const ChangedKeys& changes) {
  static const Catalog catalog;
  static const ModelCatalog models;
  Document document =
      parse_document(test::text_of(std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + file), "s.json");
  for (const auto& [pointer, json] : changes) set_at_pointer(document, pointer, json);
  return read_scenario(document, catalog, models);
}

const char* const kLarge = "study/deepseek-v3-serve-16-h200.json";

}  // namespace

TEST_CASE("a phase alone that does not say how it is laid out is laid out as the other") {
  const Scenario prefill = read(kLarge, {{"/plan/phase", "prefill"}});
  REQUIRE(prefill.service.phases.size() == 1);
  CHECK(prefill.service.phases[0].plan.ep == 16);
  CHECK(prefill.service.phases[0].plan.dp == 16);
  const Scenario given = read(kLarge, {{"/plan/phase", "prefill"}, {"/plan/prefill/ep", R"({"degree": 8})"}});
  CHECK(given.service.phases[0].plan.ep == 8);
  const Scenario decode = read(kLarge, {{"/plan/phase", "decode"},
                                        {"/plan/decode", R"({"max_batch": 64})"},
                                        {"/plan/prefill/ep", R"({"degree": 8})"}});
  CHECK(decode.service.phases[0].plan.ep == 8);
  const char* const stages = "smoke/serve-stages.json";
  const Scenario in_two = read(stages, {{"/plan/phase", "prefill"}, {"/plan/steps", "surface"}});
  CHECK(in_two.service.phases[0].plan.pp == 2);
  CHECK(in_two.service.phases[0].plan.tp == 8);
  CHECK(read(stages, {{"/plan/phase", "prefill"}, {"/plan/prefill/pp", "1"}}).service.phases[0].plan.pp == 1);
}

TEST_CASE("replicas of several ranks share experts with as many others as the degree of experts says") {
  const auto plan_of = [](const char* attention, const char* ep) {
    return read(kLarge,
                {{"/plan/phase", "decode"}, {"/plan/decode/attention", attention}, {"/plan/decode/ep", ep}})
        .service.phases[0];
  };
  for (const auto& [attention, ep, replicas, instances, how] :
       {std::tuple{R"({"tp": 4})", R"({"degree": 16})", 4, 1, ExpertSharing::kDispatch},
        {R"({"tp": 4})", R"({"degree": 8})", 2, 2, ExpertSharing::kDispatch},
        {R"({"tp": 2, "dp": 4})", R"({"degree": 4})", 2, 2, ExpertSharing::kDispatch},
        {R"({"tp": 4})", R"({"degree": 4, "dispatch": "deepep"})", 1, 4, ExpertSharing::kDispatch},
        {R"({"tp": 4})", R"({"degree": 4})", 1, 4, ExpertSharing::kAllReduce},
        {R"({"tp": 4})", R"({"degree": 2})", 1, 4, ExpertSharing::kAllReduce},
        {R"({"tp": 1})", R"({"degree": 8})", 8, 2, ExpertSharing::kDispatch},
        {R"({"tp": 1})", R"({"degree": 1})", 1, 16, ExpertSharing::kAlone}}) {
    INFO(attention << " and experts " << ep);
    const ServicePhase phase = plan_of(attention, ep);
    CHECK(phase.plan.replicas() == replicas);
    CHECK(phase.instances == instances);
    CHECK(phase.plan.sharing(true) == how);
    CHECK(phase.plan.sequence_parallel(true) == (phase.plan.tp > 1 && how == ExpertSharing::kDispatch));
  }
  CHECK_THROWS_WITH(plan_of(R"({"tp": 2, "dp": 6})", R"({"degree": 8})"),
                    Catch::Contains("4 replicas share experts by 8: that does not divide dp 6"));
  CHECK_THROWS_WITH(plan_of(R"({"tp": 4})", R"({"degree": 32})"),
                    Catch::EndsWith("/plan/decode: ep 32 spreads experts over 32 ranks, of which dp 4 x tp 4 "
                                    "has 16: expected an ep degree of at most 16"));
}

TEST_CASE("the phases of a pool share experts each as its own dispatch says") {
  const auto sharing = [](const char* prefill, const char* decode) {
    const Scenario scenario = read(kLarge, {{"/plan/prefill", prefill},
                                            {"/plan/decode/attention", R"({"tp": 4})"},
                                            {"/plan/decode/ep", decode},
                                            {"/plan/steps", "surface"}});
    const ServingPlan& plan = scenario.service.phases.at(0).plan;
    return std::pair(plan.sharing(false), plan.sharing(true));
  };
  const char* const kReduced = R"({"ep": {"degree": 4, "dispatch": "auto"}})";
  const char* const kSent = R"({"ep": {"degree": 4, "dispatch": "deepep"}})";
  CHECK(sharing(kReduced, R"({"degree": 4, "dispatch": "deepep-low-latency"})") ==
        std::pair(ExpertSharing::kAllReduce, ExpertSharing::kDispatch));
  CHECK(sharing(kSent, R"({"degree": 4, "dispatch": "auto"})") ==
        std::pair(ExpertSharing::kDispatch, ExpertSharing::kAllReduce));
}

TEST_CASE("ranks have shared experts whole where either phase of their pool dispatches") {
  const auto weights = [](const char* prefill, const char* decode) {
    const auto experts = [](const char* dispatch) {
      return fmt::format(R"({{"degree": 8, "dispatch": "{}"}})", dispatch);
    };
    const std::string of_prefill = fmt::format(R"({{"ep": {}}})", experts(prefill)),
                      of_decode = experts(decode);
    const Scenario scenario = read(kLarge, {{"/plan/prefill", of_prefill.c_str()},
                                            {"/plan/decode/attention", R"({"tp": 8})"},
                                            {"/plan/decode/ep", of_decode.c_str()},
                                            {"/plan/steps", "surface"}});
    return service_pools(scenario).front().weights;
  };
  const Bytes sent = weights("deepep", "deepep");
  CHECK(weights("auto", "auto") < sent);
  CHECK(weights("auto", "deepep") == sent);
  CHECK(weights("deepep", "auto") == sent);
}

TEST_CASE("replicas that share each expert by columns are an instance") {
  const auto plan_of = [](const char* attention, const char* experts) {
    return read(kLarge, {{"/plan/phase", "decode"},
                         {"/plan/decode/attention", attention},
                         {"/plan/decode/ep", experts}})
        .service.phases[0];
  };
  for (const auto& [attention, experts, replicas, instances, how, of_expert] :
       {std::tuple{R"({"tp": 1})", R"({"degree": 1, "tp": 8})", 8, 2, ExpertSharing::kGather, 8},
        {R"({"tp": 1})", R"({"degree": 2, "tp": 4})", 8, 2, ExpertSharing::kGather, 4},
        {R"({"tp": 1})", R"({"degree": 8, "tp": 1})", 8, 2, ExpertSharing::kDispatch, 1},
        {R"({"tp": 4})", R"({"degree": 1, "tp": 16})", 4, 1, ExpertSharing::kGather, 16},
        {R"({"tp": 8})", R"({"degree": 2, "tp": 4})", 1, 2, ExpertSharing::kAllReduce, 4},
        {R"({"tp": 8})", R"({"degree": 2})", 1, 2, ExpertSharing::kAllReduce, 4}}) {
    INFO(attention << " and experts " << experts);
    const ServicePhase phase = plan_of(attention, experts);
    CHECK(phase.plan.replicas() == replicas);
    CHECK(phase.instances == instances);
    CHECK(phase.plan.sharing(false) == how);
    CHECK(phase.plan.sharing(true) == how);
    CHECK(phase.plan.ranks_of_expert() == of_expert);
  }
}

TEST_CASE("how iterations are carried out is shown as it was decided") {
  const auto shown = [](const Scenario& scenario) {
    for (const Setting& setting : scenario.settings)
      if (setting.pointer == "/plan/steps") return setting.value;
    return std::string();
  };
  CHECK(shown(read("smoke/serve-apart.json", {})) == "\"surface\"");
  CHECK(shown(read("smoke/serve-small.json", {})) == "\"full\"");
  CHECK(shown(read("smoke/serve-apart.json", {{"/plan/steps", "full"}})) == "\"full\"");
}

// 1,024 x 201,088 logits: 5.35 GB; an iteration of 8,192 tokens takes less.
TEST_CASE("vLLM keeps room for the logits of all sequences that may run") {
  const auto work_of = [](const char* most) {
    return service_pools(read("study/serve-gpt-oss-windows.json", {{"/plan/decode/max_batch", most}}))
        .front()
        .work.value;
  };
  CHECK(work_of("1024") == Approx(1024.0 * 201088 * 26));
  CHECK(work_of("16") < 2e9);
}

// Half of gpt-oss's layers look back to 128 tokens: eight pages of 16, and the one in which they begin.
TEST_CASE("a page holds a part of the layers where some keep their window alone") {
  const char* const file = "study/serve-gpt-oss-windows.json";
  const auto pool_of = [&](const char* windows) {
    return std::move(service_pools(read(file, {{"/plan/cache/windows", windows}})).front());
  };
  const ServicePool all = pool_of("all"), apart = pool_of("window");
  CHECK(all.parts.all() == 1);
  CHECK(apart.parts.whole == 1);
  CHECK(apart.parts.windowed == 1);
  CHECK(apart.parts.window == 9);
  CHECK(apart.page_bytes.value == all.page_bytes.value / 2);
  CHECK(apart.pages / 2 == all.pages);
  CHECK(describe(apart).find("up to 9 more for layers with a window") != std::string::npos);
  CHECK(pool_rules(read(file, {}).service, apart).instance.replica.parts.windowed == 1);
}

TEST_CASE("what a framework does with windows by itself it does where it can") {
  const auto keeps = [](const ChangedKeys& changes) {
    ChangedKeys all{{"/plan/cache", "{}"}};
    all.insert(all.end(), changes.begin(), changes.end());
    return read("study/serve-gpt-oss-windows.json", all).service.keeps_windows_only;
  };
  CHECK(keeps({}));
  CHECK_FALSE(keeps({{"/plan/framework", "sglang"}}));
  CHECK_FALSE(keeps({{"/model", "llama-3.1-8b"}, {"/plan/precision", "{}"}}));
  CHECK_FALSE(keeps({{"/plan/cache/dram", R"({"capacity": "100 GB"})"},
                     {"/workload/trace", R"({"generator": "conversation", "requests": 10, "rate": 1})"}}));
}

TEST_CASE("weights that leave no room are said with how they are laid out") {
  const Scenario whole = read(kLarge, {{"/plan/phase", "prefill"}, {"/plan/decode", R"({"max_batch": 64})"}});
  CHECK_THROWS_WITH(service_pools(whole),
                    Catch::Contains(" of weights (tp 1, ep 1: whole weights on each rank) leave no room"));
}

TEST_CASE("an engine that keeps what its sizes take leaves each pool a share of its own") {
  const ChangedKeys sglang{{"/plan/framework", "\"sglang\""}, {"/plan/cache", R"({"block_tokens": 64})"}};
  const Scenario apart = read("smoke/serve-apart.json", sglang);
  REQUIRE(apart.service.reserve.is_told());
  const std::vector<ServicePool> pools = service_pools(apart);
  REQUIRE(pools.size() == 2);
  std::vector<double> shares;
  for (const ServicePool& pool : pools) {
    const ServingPlan& plan = pool.phase.plan;
    const Bytes memory = pool.job->scenario.cluster->pools.front().accelerator.memory;
    shares.push_back(
        share_beside(apart.service.reserve, memory, {plan.dp, plan.tp, plan.pp, plan.token_budget}));
    const Bytes held = pool.weights + pool.page_bytes * static_cast<double>(pool.pages);
    const Bytes free = memory - apart.service.runtime.of(plan.dp * plan.tp);
    CHECK(held <= free * shares.back());
    CHECK(free * shares.back() < held + pool.page_bytes);
  }
  CHECK(shares.front() != shares.back());
  ChangedKeys long_ones = sglang;
  long_ones.emplace_back("/plan/prefill/token_budget", "100000");
  CHECK_THROWS_WITH(
      service_pools(read("smoke/serve-apart.json", long_ones)),
      Catch::Contains("the engine keeps ") && Catch::Contains("/plan/cache/hbm/share says otherwise"));
}

// Eight ranks that cut the prompts of one replica leave what one replica of eight ranks does.
TEST_CASE("an engine keeps something for each replica of attention and not for each rank that cuts prompts") {
  const Scenario cut = read("smoke/serve-cut-prompts.json",
                            {{"/plan/framework", "\"sglang\""}, {"/plan/prefill/token_budget", "16384"}});
  REQUIRE(cut.service.reserve.is_told());
  const ServicePool pool = service_pool(cut, cut.service.phases.front());
  REQUIRE(pool.phase.plan.cp == 8);
  const Bytes memory = pool.job->scenario.cluster->pools.front().accelerator.memory;
  const double share = share_beside(cut.service.reserve, memory, {1, 8, 1, 16384});
  const Bytes held = pool.weights + pool.page_bytes * static_cast<double>(pool.pages);
  const Bytes free = memory - cut.service.runtime.of(8);
  CHECK(held <= free * share);
  CHECK(free * share < held + pool.page_bytes);
}

TEST_CASE("an engine keeps for graphs without an end what those of all that may run take") {
  const auto captured = [](const char* most) {
    const Scenario scenario = read("smoke/serve-apart.json", {{"/plan/framework", "\"sglang\""},
                                                              {"/plan/cache", R"({"block_tokens": 64})"},
                                                              {"/plan/decode/max_batch", "100"},
                                                              {"/plan/scheduler/captured_most", most}});
    return engine_size(scenario.service.phases.back().plan).captured;
  };
  CHECK(captured("0") == captured("100"));
  CHECK(captured("0") == 100);
  CHECK(captured("512") == 512);
}

TEST_CASE("devices of experts that stand apart hold a process, too") {
  const auto pools = [](const char* runtime) {
    return service_pools(read("smoke/serve-afd.json", {{"/plan/cache/hbm/runtime", runtime}}));
  };
  CHECK(pools("\"60 GB\"").front().runtime.value == 60e9);
  CHECK_THROWS_WITH(pools("\"80 GB\""), Catch::Contains("experts and an iteration need ") &&
                                            Catch::Contains(", 80 GB of it its process's"));
}

TEST_CASE("what a process holds is shown as it is counted, and may be nothing") {
  const ChangedKeys sglang{{"/plan/decode/attention", R"({"dp": 8, "tp": 2})"},
                           {"/plan/framework", "\"sglang\""}};
  ChangedKeys nothing = sglang;
  nothing.emplace_back("/plan/cache/hbm/runtime", "\"0 B\"");
  const auto shown = [](const Scenario& scenario) {
    return std::find_if(scenario.settings.begin(), scenario.settings.end(), [](const Setting& setting) {
             return setting.pointer == "/plan/cache/hbm/runtime";
           })->value;
  };
  const Scenario counted = read("smoke/serve-tiers.json", sglang);
  const Scenario none = read("smoke/serve-tiers.json", nothing);
  CHECK(shown(counted) == "\"2.58 GB\"");
  CHECK(shown(none) == "\"0 B\"");
  const auto text = [](const Scenario& scenario) {
    return describe(service_pool(scenario, scenario.service.phases.front()));
  };
  CHECK_THAT(text(counted), Catch::Contains("a process without them"));
  CHECK_THAT(text(none), !Catch::Contains("a process without them"));
}

TEST_CASE("neither weights nor cache have what a process and its communicators hold of a device") {
  const auto room = [](const ChangedKeys& changes) {
    const Scenario scenario = read("smoke/serve-tiers.json", changes);
    const ServicePool pool = service_pool(scenario, scenario.service.phases.front());
    return pool.page_bytes * static_cast<double>(pool.pages);
  };
  const auto taken = [&](const char* framework, const char* of) {
    const ChangedKeys keys{{"/plan/decode/attention", R"({"dp": 8, "tp": 2})"},
                           {"/plan/framework", framework},
                           {"/plan/cache/hbm/of", of},
                           {"/plan/cache/hbm/share", "0.8"}};
    ChangedKeys none = keys, gibibyte = keys;
    none.emplace_back("/plan/cache/hbm/runtime", "1 B");
    gibibyte.emplace_back("/plan/cache/hbm/runtime", "1 GiB");
    const Bytes most = room(none);
    CHECK(room(keys) < room(gibibyte));  // ranks beside it: communicators, too
    return (most - room(gibibyte)).value / (1024.0 * 1024 * 1024);
  };
  const double page = 0.01;  // of a gibibyte: rooms are of whole pages
  CHECK(taken("sglang", "held") == Approx(0.8).margin(page));
  CHECK(taken("vllm", "used") == Approx(1).margin(page));
  CHECK(taken("trtllm", "free") == Approx(0.8).margin(page));
  CHECK_THROWS_WITH(read("smoke/serve-tiers.json", {{"/plan/cache/hbm/runtime", "\"much\""}}),
                    Catch::Contains("/plan/cache/hbm/runtime: expected"));
}

TEST_CASE("what a device of a pool holds adds up to the share that weights and cache may have") {
  const Scenario tiers = read("smoke/serve-tiers.json", {});
  const std::vector<ServicePool> pools = service_pools(tiers);
  REQUIRE(pools.size() == 1);
  const ServicePool& pool = pools.front();
  CHECK(pool.pages == 1848);  // as its run reports
  const Bytes share = tiers.cluster->pools.front().accelerator.memory * tiers.service.device_share;
  const Bytes held = pool.weights + pool.page_bytes * static_cast<double>(pool.pages);
  CHECK(held <= share);
  CHECK(share < held + pool.page_bytes);
  CHECK(pool.work.value > 0);
  const std::string text = describe(pool);
  CHECK(text.find("16 instances of 1 device (dp 1, tp 1)") != std::string::npos);
  CHECK(text.find("1,848 pages of 64 tokens: 118,272 tokens a replica") != std::string::npos);
  CHECK(text.find("serve nothing") == std::string::npos);
  const Scenario half = read("smoke/serve-tiers.json", {{"/plan/decode/attention/dp", "8"}});
  CHECK(describe(service_pools(half).front()).find("8 of the 16 devices of pool serve serve nothing") !=
        std::string::npos);
}

TEST_CASE("experts of one pool are placed though those of the other all stand on each rank") {
  const Scenario apart =
      read("smoke/serve-apart.json", {{"/plan/expert_balance", R"({"policy": "static", "redundant": 8})"}});
  CHECK(apart.service.phases[0].plan.slots_of(apart.model.experts) == 128);  // prefill: ep 1
  CHECK(apart.service.phases[1].plan.slots_of(apart.model.experts) == 136);  // decode: ep 8
}

// Qwen3-30B-A3B: 48 layers of 4 heads with keys and values of 128 in two bytes, Llama 3.1 8B 32 layers of 8.
// Eight ranks have each head twice, and once.
TEST_CASE("a cache that goes to more ranks than it has heads goes to each of them, a draft model's too") {
  const auto bytes_to = [](ChangedKeys changes) {
    changes.emplace_back("/plan/prefill/ep", R"({"degree": 8})");
    const Scenario scenario = read("smoke/serve-apart.json", changes);
    std::vector<double> bytes;
    for (const ServicePool& pool : service_pools(scenario))
      bytes.push_back(pool_rules(scenario.service, pool).cache_bytes_per_token);
    return bytes;
  };
  const double once = 48 * 2 * 4 * 128 * 2, llama = 32 * 2 * 8 * 128 * 2;
  const auto decode_by = [](int tp) {
    return std::pair("/plan/decode/attention", tp == 8 ? R"({"dp": 1, "tp": 8})" : R"({"dp": 8, "tp": 1})");
  };
  const auto guesses = [](const char* text) { return std::pair("/plan/decode/speculative", text); };
  const char* const kLlama = R"({"mtp": 1, "acceptance": 0.5, "model": "llama-3.1-8b"})";
  const char* const kItself = R"({"mtp": 1, "acceptance": 0.5, "model": "qwen3-30b-a3b"})";
  CHECK(bytes_to({decode_by(1)}) == std::vector<double>{once, once});
  CHECK(bytes_to({decode_by(8)}) == std::vector<double>{once, 2 * once});
  CHECK(bytes_to({decode_by(8), guesses(kLlama)}) == std::vector<double>{once + llama, 2 * once + llama});
  CHECK(bytes_to({decode_by(8), guesses(kItself)}) == std::vector<double>{2 * once, 4 * once});
}

// Three matrices of 2,048 x 768; numbers of 8 and 4 bits with their scales.
TEST_CASE("experts that move have the bytes of their own format, not of other products'") {
  const auto bytes_by = [](const char* precision) {
    const Scenario scenario =
        read("smoke/serve-apart.json", {{"/plan/precision", precision},
                                        {"/plan/expert_balance", R"({"policy": "static", "redundant": 8})"}});
    return balancer_shape(service_pools(scenario)[1]).expert_bytes;
  };
  constexpr double kElements = 3 * 2048 * 768;
  CHECK(bytes_by(R"({"gemm": "bf16"})") == 2 * kElements);
  CHECK(bytes_by(R"({"gemm": "bf16", "experts": "fp8"})") == bytes_by(R"({"gemm": "fp8"})"));
  CHECK(bytes_by(R"({"gemm": "bf16", "experts": "fp8"})") == Approx(kElements).epsilon(0.05));
  CHECK(bytes_by(R"({"gemm": "bf16", "expert_weights": "int4"})") < 0.6 * kElements);
}

// Two nodes of eight: ranks that share each expert by columns stand beside each other.
TEST_CASE("experts that ranks have columns of stand on as many nodes as these") {
  const auto shape_of = [](const char* ep) {
    const Scenario scenario =
        read(kLarge,
             {{"/plan/steps", "surface"}, {"/plan/prefill/token_budget", "2048"}, {"/plan/decode/ep", ep}});
    return balancer_shape(service_pools(scenario)[0]);
  };
  CHECK(shape_of(R"({"degree": 16})").ranks_per_node == 8);
  const BalancerShape halves = shape_of(R"({"degree": 2, "tp": 8})");
  CHECK(halves.ranks == 2);
  CHECK(halves.ranks_per_node == 1);
  CHECK(halves.cut_over == 8);
  CHECK(halves.expert_bytes * 8 == Approx(shape_of(R"({"degree": 16})").expert_bytes));
  CHECK(shape_of(R"({"degree": 4, "tp": 4})").ranks_per_node == 2);
}

}  // namespace moebius
