// Rows of measured servers: which are kept apart, what each becomes, and how errors are counted.
#include <cstdio>
#include <fstream>
#include <string>

#include "hw/catalog.h"
#include "workloads/scenario/scenario.h"
#include "workloads/serving/frameworks.h"
#include "workloads/validation/servers/server_errors.h"
#include "workloads/validation/servers/server_scenario.h"
#include "workloads/validation/servers/server_table.h"
#include "workloads/validation/servers/sha256.h"

#include "tests/catch.h"

namespace {

using namespace moebius;

std::string hexadecimal(std::string_view text) {
  std::string digits;
  for (const std::uint8_t byte : sha256(text)) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", byte);
    digits += pair;
  }
  return digits;
}

ServerRow llama() {
  ServerRow row;
  row.system = "h200_sxm", row.backend = "vllm", row.model = "meta-llama/Llama-3.1-70B";
  row.precision = row.gemm = row.moe = "fp8", row.mode = "agg", row.dump = "2026-04-06.csv";
  row.input = 8192, row.output = 1024, row.users = 64;
  row.both = {.workers = 1, .batch = 64, .tp = 8, .pp = 1, .dp = 1, .moe_tp = 8, .moe_ep = 1};
  row.ttft = 1, row.tpot = 0.03;
  return row;
}

std::string text_at(const Document& document, const std::string& pointer) {
  const Value* value = &document.root;
  for (std::size_t at = 1; at <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at), pointer.size());
    value = value->find(pointer.substr(at, end - at));
    if (value == nullptr) return "";
    at = end + 1;
  }
  return value->kind == Value::Kind::kString ? value->text : to_json(*value);
}

ServerResult result(const std::string& model, double ttft_ratio, double tpot_ratio, double tpot) {
  ServerResult r;
  r.row = llama();
  r.row.model = model;
  r.row.tpot = tpot;
  r.ttft = r.row.ttft * ttft_ratio, r.tpot = tpot * tpot_ratio;
  return r;
}

}  // namespace

TEST_CASE("the hash that keeps rows apart is that of FIPS 180-4") {
  // Its examples: "abc", the empty message of NIST's vectors, and one of two blocks.
  CHECK(hexadecimal("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hexadecimal("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hexadecimal("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_modulo("abc", 10) == 5);  // of the number above, by long division
}

TEST_CASE("a row of an aggregated server becomes a scenario with its framework and its users") {
  const ModelCatalog models;
  const ServerScenario made = server_scenario(llama(), models);
  REQUIRE(made.scenario);
  CHECK(text_at(*made.scenario, "/plan/framework") == "vllm");
  CHECK(text_at(*made.scenario, "/plan/decode/attention/tp") == "8");
  CHECK(text_at(*made.scenario, "/plan/precision/gemm") == "fp8");
  CHECK(text_at(*made.scenario, "/workload/users") == "64");
  CHECK(text_at(*made.scenario, "/workload/trace/requests") == "640");  // ten times the users
  CHECK(text_at(*made.scenario, "/cluster/kernels") ==
        "sglang-0.5.14+fp8-rowwise; quantise/fp8=sglang-0.5.14");
}

TEST_CASE("rows that AIConfigurator measured are started as its generator starts them") {
  const ModelCatalog models;
  const auto at = [&](const char* backend, const char* version, const char* pointer) {
    ServerRow row = llama();
    row.dump = "meta-llama_Llama-3.1-70B.csv", row.backend = backend, row.version = version;
    return text_at(*server_scenario(row, models).scenario, pointer);
  };
  // max_batch_size + isl + 1500 = 64 + 8192 + 1500; SGLang: isl + 1500, and prompts beside decoding.
  CHECK(at("trtllm", "1.0.0rc3", "/plan/prefill/token_budget") == "9756");
  CHECK(at("vllm", "0.12.0", "/plan/prefill/token_budget") == "9756");
  CHECK(at("sglang", "0.5.6.post2", "/plan/prefill/token_budget") == "9692");
  CHECK(at("sglang", "0.5.6.post2", "/plan/scheduler/batching") == "mixed");
  CHECK(at("sglang", "0.5.1.post1", "/plan/prefill/token_budget") == "");
  // Graphs of every size up to max_batch_size.
  for (const char* backend : {"trtllm", "vllm", "sglang"})
    CHECK(at(backend, "0.9.0", "/plan/scheduler/captured_most") == "0");
}

// vLLM decides ahead since 0.14; AIConfigurator's servers stand behind Dynamo, InferenceMAX's are Python.
TEST_CASE("hosts of a row are those of its version and of what stands before the server") {
  const ModelCatalog models;
  const auto at = [&](const char* dump, const char* version, const char* pointer) {
    ServerRow row = llama();
    row.dump = dump, row.version = version;
    return text_at(*server_scenario(row, models).scenario, pointer);
  };
  const char* own = "meta-llama_Llama-3.1-70B.csv";
  CHECK(at(own, "0.12.0", "/plan/scheduler/overlap") == "false");
  CHECK(at(own, "0.12.0", "/plan/scheduler/decided_ahead") == "false");
  CHECK(at(own, "0.14.1", "/plan/scheduler/overlap") == "");
  CHECK(at("2026-04-06.csv", "0.12.0", "/plan/scheduler/overlap") == "");  // --async-scheduling
  CHECK(at(own, "0.14.1", "/plan/scheduler/host_per_prompt_token") == "3 us");
  // One process turns text into tokens, one request after the other.
  CHECK(at("2026-04-06.csv", "0.14.1", "/plan/scheduler/host_per_prompt_token") == "0 us");
  CHECK(at("2026-04-06.csv", "0.14.1", "/plan/scheduler/host_overhead/per_prompt_token") == "10 us");
}

TEST_CASE("scripts that capture graphs of 2,048 tokens replay iterations with prompts that have no more") {
  const ModelCatalog models;
  const auto at = [&](const char* version, int input, const char* pointer) {
    ServerRow row = llama();
    row.model = "MiniMaxAI/MiniMax-M2.5", row.system = "b200_sxm", row.version = version, row.input = input;
    return text_at(*server_scenario(row, models).scenario, pointer);
  };
  CHECK(at("0.19.0", 1024, "/plan/prefill/token_budget") == "2048");  // two prompts
  CHECK(at("0.19.0", 8192, "/plan/prefill/token_budget") == "16384");
  CHECK(at("0.17.0", 1024, "/plan/prefill/token_budget") == "8192");
  CHECK(at("0.19.0", 1024, "/plan/scheduler/captured_prompts") == "2048");
  CHECK(at("0.19.0", 8192, "/plan/scheduler/captured_prompts") == "2048");
  CHECK(at("0.19.0", 1024, "/plan/scheduler/host_per_launch") == "0 us");
  CHECK(at("0.19.0", 8192, "/plan/scheduler/host_per_launch") == "");
  CHECK(at("0.17.0", 1024, "/plan/scheduler/captured_prompts") == "");
  // One setting ends graphs of both.
  CHECK(at("0.19.0", 8192, "/plan/scheduler/captured_most") == "2048");
  CHECK(at("0.17.0", 1024, "/plan/scheduler/captured_most") == "");
}

TEST_CASE("experts stand whole where the row does not have their degree and the script of its day says so") {
  const ModelCatalog models;
  const auto degree = [&](const char* measured, const char* system, int users, int told = 1) {
    ServerRow row = llama();
    row.backend = "trtllm", row.model = "openai/gpt-oss-120b", row.precision = "fp4", row.gemm = "nvfp4";
    row.version = "", row.measured = measured, row.system = system, row.users = row.both.batch = users;
    row.input = 1024;
    row.both.tp = 8, row.both.moe_tp = 8 / told, row.both.moe_ep = told, row.both.dp = 1;
    return text_at(*server_scenario(row, models).scenario, "/plan/decode/ep/degree");
  };
  CHECK(degree("2025-11-02", "h200_sxm", 8) == "8");
  CHECK(degree("2026-02-05", "h200_sxm", 8) == "1");
  CHECK(degree("2025-11-02", "b200_sxm", 8) == "1");
  CHECK(degree("2025-11-02", "b200_sxm", 16) == "8");
  CHECK(degree("2025-11-02", "b200_sxm", 16, 4) == "4");
}

// SGLang loads them in BF16 where ranks have experts whole, and its tables are of those.
TEST_CASE("gpt-oss's experts on Hopper are TensorRT-LLM's kernels, but where SGLang loads them in BF16") {
  const ModelCatalog models;
  const auto kernels = [&](const char* backend, int ranks_of_experts, const char* system = "h200_sxm") {
    ServerRow row = llama();
    row.backend = backend, row.model = "openai/gpt-oss-120b", row.precision = "fp4", row.gemm = "nvfp4";
    row.system = system;
    row.both.moe_tp = 8 / ranks_of_experts, row.both.moe_ep = ranks_of_experts;
    return text_at(*server_scenario(row, models).scenario, "/cluster/kernels");
  };
  CHECK(kernels("vllm", 1) == "trtllm-1.3.0rc20");
  CHECK(kernels("sglang", 1) == "sglang-0.5.14; grouped_gemm/bf16=trtllm-1.3.0rc20");
  CHECK(kernels("sglang", 8) == "sglang-0.5.14");
  CHECK(kernels("sglang", 1, "b200_sxm") == "sglang-0.5.14");
}

TEST_CASE("TensorRT-LLM's scripts for Llama gather short prompts and give iterations a whole sequence") {
  const ModelCatalog models;
  const auto at = [&](int output, int tp, const char* pointer) {
    ServerRow row = llama();
    row.backend = "trtllm", row.input = 1024, row.output = output, row.both.tp = row.both.moe_tp = tp;
    return text_at(*server_scenario(row, models).scenario, pointer);
  };
  CHECK(at(1024, 4, "/plan/scheduler/gather_iterations") == "20");
  CHECK(at(1024, 8, "/plan/scheduler/gather_iterations") == "");
  CHECK(at(8192, 4, "/plan/scheduler/gather_iterations") == "");
  CHECK(at(1024, 4, "/plan/prefill/token_budget") == "2248");
  CHECK(at(8192, 4, "/plan/prefill/token_budget") == "9416");
}

TEST_CASE("runs of the configurations with guesses guess") {
  const ModelCatalog models;
  ServerRow row = llama();
  row.backend = "trtllm", row.model = "deepseek-ai/DeepSeek-R1", row.version = "1.1.0rc2.post2";
  const auto guesses = [&] {
    return text_at(*server_scenario(row, models).scenario, "/plan/decode/speculative/mtp");
  };
  row.measured = "2025-12-15";
  CHECK(guesses() == "");
  row.measured = "2026-01-14";
  CHECK(guesses() == "3");
  row.version = "1.2.0rc6.post3", row.measured = "";
  CHECK(guesses() == "3");
  row.backend = "sglang", row.system = "b200_sxm", row.version = "0.5.9";
  CHECK(guesses() == "");
  row.users = row.both.batch = 256;  // more than 128, of rows whose times a token contradict guesses
  CHECK(guesses() == "");
}

TEST_CASE("Llama-3.1-70B under vLLM keeps an FP8 cache on H200, not on H100") {
  const ModelCatalog models;
  ServerRow row = llama();
  CHECK(text_at(*server_scenario(row, models).scenario, "/plan/precision/kv") == "fp8");
  row.system = "h100_sxm";
  CHECK(text_at(*server_scenario(row, models).scenario, "/plan/precision/kv") == "bf16");
}

// --mem-fraction-static of InferenceMAX's scripts; vLLM's say nothing.
TEST_CASE("SGLang's servers leave as much of a device as their scripts say") {
  const ModelCatalog models;
  ServerRow row = llama();
  const auto share = [&] { return text_at(*server_scenario(row, models).scenario, "/plan/cache/hbm/share"); };
  CHECK(share() == "");
  row.backend = "sglang", row.model = "deepseek-ai/DeepSeek-R1", row.version = "0.5.9";
  CHECK(share() == "0.82");
  row.system = "b200_sxm", row.precision = "fp4", row.gemm = row.moe = "nvfp4";
  CHECK(share() == "0.85");
  row.precision = row.gemm = row.moe = "fp8";
  row.both.tp = row.both.moe_tp = 4;
  CHECK(share() == "0.95");
}

TEST_CASE("what a framework takes for a launch comes on top of the driver's") {
  const Catalog catalog;
  const ModelCatalog models;
  const ServerScenario made = server_scenario(llama(), models);
  Time own;
  for (const Framework& framework : frameworks())
    if (framework.name == "vllm") own = framework.host_per_launch;
  REQUIRE(own.ns > 0);
  // 4 us is the default of /cluster/launch.
  CHECK(read_scenario(*made.scenario, catalog, models).cluster->launch == Time{4'000} + own);
}

// A surface interpolates between 6 and 8 sequences for 7: were the edge at 8 launched kernel by kernel, 7
// would take half of what that takes.
TEST_CASE("edges of the surface above the most sequences are replayed as graphs too") {
  const Catalog catalog;
  const ModelCatalog models;
  ServerRow row = llama();
  row.users = row.both.batch = 7;
  const Scenario scenario = read_scenario(*server_scenario(row, models).scenario, catalog, models);
  REQUIRE(scenario.service.phases.size() == 1);
  CHECK(scenario.service.phases.front().plan.max_batch == 7);
  CHECK(scenario.service.phases.front().plan.captured >= 8);
}

TEST_CASE("degrees that count the devices twice are counted once") {
  const ModelCatalog models;
  ServerRow row = llama();
  row.model = "deepseek-ai/DeepSeek-R1";
  row.both = {.workers = 1, .batch = 8, .tp = 64, .pp = 1, .dp = 1, .moe_tp = 8, .moe_ep = 8};
  ServerScenario made = server_scenario(row, models);
  REQUIRE(made.scenario);
  CHECK(text_at(*made.scenario, "/plan/decode/attention/tp") == "8");
  CHECK(text_at(*made.scenario, "/plan/decode/ep/degree") == "8");
  row.both = {.workers = 1, .batch = 8, .tp = 4, .pp = 1, .dp = 4, .moe_tp = 1, .moe_ep = 16};
  made = server_scenario(row, models);
  REQUIRE(made.scenario);
  CHECK(text_at(*made.scenario, "/plan/decode/attention/dp") == "4");
  CHECK(text_at(*made.scenario, "/plan/decode/attention/tp") == "1");
}

TEST_CASE("experts that replicas of attention share by columns stand in ep/tp") {
  const ModelCatalog models;
  ServerRow row = llama();
  row.model = "deepseek-ai/DeepSeek-R1";
  row.both = {.workers = 1, .batch = 8, .tp = 1, .pp = 1, .dp = 8, .moe_tp = 8, .moe_ep = 1};
  const ServerScenario made = server_scenario(row, models);
  REQUIRE(made.scenario);
  CHECK(text_at(*made.scenario, "/plan/decode/attention/dp") == "8");
  CHECK(text_at(*made.scenario, "/plan/decode/ep/degree") == "1");
  CHECK(text_at(*made.scenario, "/plan/decode/ep/tp") == "8");
}

TEST_CASE("a row that cannot be simulated says why") {
  const ModelCatalog models;
  const auto why = [&](auto change) {
    ServerRow row = llama();
    change(row);
    return server_scenario(row, models).left_out;
  };
  CHECK(why([](ServerRow& r) { r.model = "nobody/knows"; }) == "nobody/knows is not in the catalog");
  CHECK(why([](ServerRow& r) { r.users = 0; }) == "lengths or concurrency are not told");
  CHECK(why([](ServerRow& r) { r.gemm = "nvfp4"; }) == "h200_sxm does not compute in FP4");
  CHECK(why([](ServerRow& r) { r.mode = "disagg"; }) == "how prefill is spread is not told");
}

TEST_CASE("a row with stages is a server whose layers stand on as many times its ranks") {
  ServerRow row = llama();
  row.both.tp = 4;
  row.both.pp = 2;
  const ModelCatalog models;
  const ServerScenario made = server_scenario(row, models);
  REQUIRE(made.scenario);
  CHECK(text_at(*made.scenario, "/plan/decode/pp") == "2");
}

TEST_CASE("errors are medians by group and order is judged by throughput") {
  // TPOT errors +10%, -20%, +30%: median of absolutes 20%, of signed ones +10%. Throughput falls with TPOT,
  // and ours keeps the order 0.01 < 0.02 < 0.04 s: 0.011, 0.016, 0.052.
  const std::vector<ServerResult> results{result("a", 1, 1.1, 0.01), result("a", 1, 0.8, 0.02),
                                          result("a", 1, 1.3, 0.04)};
  const ServerSummary summary = summary_of(results);
  REQUIRE(summary.groups.front().by == "all");
  CHECK(summary.groups.front().tpot.median == Approx(0.2));
  CHECK(summary.groups.front().tpot.bias == Approx(0.1));
  CHECK(summary.groups.front().ttft.median == Approx(0).margin(1e-12));
  REQUIRE(summary.ranks.size() == 1);
  CHECK(summary.ranks.front().spearman == Approx(1));
}

TEST_CASE("two rows have no order that says anything") {
  const std::vector<ServerResult> results{result("a", 1, 1, 0.01), result("a", 1, 1, 0.02)};
  CHECK(servers_text(results).find("over configurations: -") != std::string::npos);
  CHECK(servers_json(results).find("\"rank_correlation\": null") != std::string::npos);
}

TEST_CASE("rows kept for the fit of host costs are not scored") {
  std::vector<ServerResult> results{result("a", 1, 1, 0.01), result("a", 9, 9, 0.01)};
  results[1].row.for_fit = true;
  const ServerSummary summary = summary_of(results);
  CHECK(summary.scored == 1);
  CHECK(summary.for_fit == 1);
  CHECK(summary.groups.front().tpot.median == Approx(0).margin(1e-12));
}
