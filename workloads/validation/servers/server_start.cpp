#include "workloads/validation/servers/server_start.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace moebius {
namespace {

constexpr const char* kSglang = "sglang-0.5.14";
constexpr const char* kTensorRt = "trtllm-1.3.0rc20";

bool is_deepseek(const Model& model) {
  return model.id.starts_with("deepseek-v3") || model.id.starts_with("deepseek-r1");
}

bool is_gpt_oss(const Model& model) {
  return model.id.starts_with("gpt-oss");
}

bool blackwell(const ServerRow& row) {
  return row.system.starts_with("b");
}

// Experts of DeepSeek in TensorRT-LLM on Blackwell run in its generated kernels (moe_config backend TRTLLM),
// but for FP4 with attention DP (CUTLASS), and before 1.2 (DeepGEMM for FP8). SGLang has those kernels too,
// by FlashInfer, and its tables tell them; TensorRT-LLM's tell CUTLASS and DeepGEMM.
bool generated_experts(const ServerRow& row, const Model& model, const ServerShape& shape) {
  if (row.backend != "trtllm" || !is_inferencemax(row) || !blackwell(row) || !is_deepseek(model))
    return false;
  return row.gemm == "nvfp4" ? shape.replicas == 1 : !row.version.starts_with("1.1");
}

// Dense products on Blackwell. FP4: TensorRT-LLM's table has 19 us for matrices of 22 and of 59 MB alike: the
// host's work for its operator was timed. FP8 by blocks: SGLang's table has 20 us where the same DeepGEMM
// takes 11 in TensorRT-LLM's, the rest being passes around it, and the servers ran FlashInfer's
// (SGLANG_ENABLE_FLASHINFER_GEMM) or CUTLASS's. Each is taken from the stack that times the kernel.
std::string dense_on_blackwell(const ServerRow& row, bool tensor_rt) {
  if (!blackwell(row)) return "";
  if (tensor_rt && row.gemm == "nvfp4") return fmt::format("; gemm/fp4={}", kSglang);
  if (!tensor_rt && row.gemm.starts_with("fp8")) return fmt::format("; gemm/fp8={}", kTensorRt);
  return "";
}

// There are no tables of vLLM's kernels: most are SGLang's too. On Hopper its MXFP4 experts are not: Marlin,
// as TensorRT-LLM's kernels there, blows weights up to BF16 in registers, SGLang's Triton kernel in memory.
std::string kernels_of(const ServerRow& row, const Model& model, const ServerShape& shape) {
  const bool tensor_rt =
      row.backend == "trtllm" || (row.backend == "vllm" && is_gpt_oss(model) && !blackwell(row));
  std::string kernels = tensor_rt ? kTensorRt : kSglang;
  if (shape.per_tensor) return kernels + "+fp8-rowwise";
  if (generated_experts(row, model, shape))
    kernels += fmt::format("; grouped_gemm/{}={}", row.gemm == "nvfp4" ? "fp4" : "fp8", kSglang);
  return kernels + dense_on_blackwell(row, tensor_rt);
}

// Scripts for B200 that say --max-cudagraph-capture-size 2048 and --max-num-batched-tokens of two prompts:
// minimaxm2.5_fp8_b200.sh and minimaxm2.5_fp4_b200.sh since vLLM 0.19, kimik2.5_fp4_b200.sh since pull
// request 1047 of April 2026.
bool batches_two_prompts(const ServerRow& row, const Model& model) {
  if (!blackwell(row)) return false;
  if (model.id.starts_with("minimax-m2")) return row.version == "0.19.0";
  return model.id.starts_with("kimi-k2") && row.gemm == "nvfp4" && row.measured >= "2026-04-15";
}

// gptoss_fp4_*.sh: max-num-batched-tokens 8192, which is vLLM's own, and max-cudagraph-capture-size 2048. A
// prompt that has no more tokens is replayed as graphs: only the driver launches.
void start_vllm(const ServerRow& row, const Model& model, ServerStart& start) {
  const bool two = batches_two_prompts(row, model);
  start.token_budget = two ? 2 * row.input : 8192;
  start.replays_prompts = (two || is_gpt_oss(model)) && row.input <= 2048;
  if (start.replays_prompts) start.scheduler.push_back(R"("host_per_launch": "0 us")");
}

// More users than dsr1_fp8_b200.sh lets run: those of dsr1_fp8_b200_mtp.sh, which guesses.
bool guesses_in_sglang(const ServerRow& row) {
  return row.backend == "sglang" && blackwell(row) && !row.apart() && row.gemm == "fp8" && row.users > 128;
}

// dsr1_fp8_b200.sh, dsr1_fp4_b200.sh (--scheduler-recv-interval by users), dsr1_fp8_h200.sh.
void start_sglang(const ServerRow& row, ServerStart& start) {
  start.token_budget = 32768;
  if (row.apart() || !blackwell(row)) return;
  const bool four = row.both.tp == 4 || row.both.tp == 16;  // of 4 devices, counted once or twice
  if (row.gemm == "nvfp4") {
    start.token_budget = 16384, start.max_batch = 256;
  } else {
    start.token_budget = four ? 8192 : 32768;
    start.max_batch = guesses_in_sglang(row) ? 512 : four ? 32 : 128;
  }
  const bool often = row.users < 16 || (four && row.gemm != "nvfp4");
  start.scheduler.push_back(fmt::format(R"("receive_every": {})", often ? 10 : 30));
}

// gptoss_fp4_*_trt.sh; dsr1_*_trt.sh: --max_num_tokens one prompt and the batch, since 1.2 not less than
// 8,192.
int tensor_rt_budget(const ServerRow& row, const Model& model, int batch) {
  if (is_gpt_oss(model)) return 20000;
  const int tokens = (batch + row.input + 64 + 63) / 64 * 64;
  return row.version.starts_with("1.2") ? std::max(8192, tokens) : tokens;
}

// vLLM decides an iteration while the one before it goes on since 0.14 (release notes of v0.14.0:
// asynchronous scheduling is on by default); before, it waited for the tokens, and InferenceMAX's scripts
// asked for it.
bool waits_for_tokens(const ServerRow& row) {
  int minor = 0;
  return std::sscanf(row.version.c_str(), "0.%d.", &minor) == 1 && minor < 14;
}

// What its loop then does between iterations: read off the rows that are kept for the fit (Qwen3-32B with 8
// and 32 users: 1.6 and 3.6 ms a token more than the device takes).
constexpr const char* kInTurns =
    R"("overlap": false, "decided_ahead": false, "host_per_iteration": "1 ms", "host_per_sequence": "60 us")";

// They stand behind Dynamo, whose front is not Python (generator/config/backend_templates: python3 -m
// dynamo.frontend is its Rust server): as the 13 rows with 64 users at most that are kept for the fit tell,
// of a grid of requests and tokens.
constexpr const char* kDynamo = R"("host_per_request": "5 ms", "host_per_prompt_token": "3 us")";

// Rows that AIConfigurator measured itself were started by its own generator
// (generator/rule_plugin/benchmark: trtllm.rule and vllm.rule, max_num_tokens = max_batch_size + isl + 1500;
// sglang.rule, max_prefill_tokens = isl + 1500 and enable_mixed_chunk). SGLang 0.5.1 is older than its rules.
// One process of TensorRT-LLM 1.0 turns tokens into text and sends them: no row passes on more than 13,000 a
// second, however short its iterations (row kept for the fit: Llama-3.1-8B on 8 devices, 128 users, 11.08 ms
// a token).
void start_generated(const ServerRow& row, ServerStart& start) {
  start.scheduler.push_back(kDynamo);
  if (row.apart()) return;
  if (row.backend != "sglang") {
    start.token_budget = row.both.batch + row.input + 1500;
    start.scheduler.push_back(R"("captured_step": 1)");
    if (row.backend == "trtllm")
      start.scheduler.push_back(R"("pipeline": "parallel", "host_overhead": {"per_token": "75 us"})");
    if (row.backend == "vllm" && waits_for_tokens(row)) start.scheduler.push_back(kInTurns);
  } else if (!row.version.starts_with("0.5.1")) {
    start.token_budget = row.input + 1500;
    start.scheduler.push_back(R"("captured_step": 1, "batching": "mixed")");
  }
}

// Launches on InferenceMAX's Hopper nodes take TensorRT-LLM twice as long as on its B200 nodes: the ten rows
// that are kept for the fit, of a grid from 56 to 160 us.
constexpr const char* kHopperLaunches = R"("host_per_launch": "120 us")";

// With attention DP (attention_dp_config: enable_balance): timeout_iters 60 and batching_wait_iters 0 for
// DeepSeek, the framework's 50 and 10 for gpt-oss. dsr1_fp8_b200_trt.sh of 1.2.0rc6.post2, 64 users and more,
// 1K in and out: batch_wait_timeout_iters 40, batch_wait_max_tokens_ratio 0.8.
void gather_prompts(const ServerRow& row, const Model& model, const ServerShape& shape, ServerStart& start) {
  if (shape.replicas > 1 && is_gpt_oss(model)) {
    start.scheduler.push_back(R"("await_prompts": 50, "gather_prompts": 10)");
  } else if (shape.replicas > 1 && is_deepseek(model)) {
    start.scheduler.push_back(R"("await_prompts": 60)");
  } else if (is_deepseek(model) && blackwell(row) && row.gemm.starts_with("fp8") && !row.apart() &&
             row.version == "1.2.0rc6.post2" && row.users >= 64 && row.input == 1024 && row.output == 1024) {
    start.scheduler.push_back(R"("gather_iterations": 40, "gather_share": 0.8)");
  }
}

// 1.2.0rc6.post3 is the version of the configurations with guesses alone (dsr1-fp4-b200-trt-mtp,
// dsr1-fp8-b200-trt-mtp); pull request 392 added them, and dsr1-fp8-h200-trt-mtp, on 1.1.0rc2.post2, which
// ran on 14 January 2026 and without guesses on other days. They guess 3 tokens, with attention DP 1. The
// first holds in 82% (vLLM pull request 12755: 81 to 82.3% for R1), and 3.2 tokens come of an iteration with
// 7 guesses (model card of nebius/MTP-DeepSeek-V3-0324, original module): 63% for each further one.
std::string guesses_of(const ServerRow& row, const Model& model, const ServerShape& shape) {
  // --speculative-num-steps 2 (pull request 626).
  if (is_deepseek(model) && guesses_in_sglang(row))
    return R"({"mtp": 2, "acceptance_by_place": [0.82, 0.63]})";
  const bool first = row.version == "1.1.0rc2.post2" && row.measured == "2026-01-14";
  if (row.backend != "trtllm" || !is_deepseek(model) || (!first && row.version != "1.2.0rc6.post3"))
    return "";
  if (shape.replicas > 1) return R"({"mtp": 1, "acceptance": 0.82})";
  return R"({"mtp": 3, "acceptance_by_place": [0.82, 0.63, 0.63]})";
}

}  // namespace

bool keeps_fp8(const ServerRow& row, const Model& model) {
  return row.backend == "vllm" && row.system.starts_with("h200") && model.id.starts_with("llama-3.1-70b");
}

bool is_inferencemax(const ServerRow& row) {
  return row.dump.starts_with("20") || row.dump.find("gap-analysis") != std::string::npos;
}

ServerStart server_start(const ServerRow& row, const Model& model, const ServerShape& shape) {
  ServerStart start{.kernels = kernels_of(row, model, shape)};
  if (!is_inferencemax(row)) {
    start_generated(row, start);
    return start;
  }
  if (row.backend == "vllm") start_vllm(row, model, start);
  if (row.backend == "sglang") start_sglang(row, start);
  if (row.backend == "trtllm") {
    start.token_budget = tensor_rt_budget(row, model, shape.batch);
    gather_prompts(row, model, shape, start);
    if (!blackwell(row)) start.scheduler.push_back(kHopperLaunches);
  }
  start.speculative = guesses_of(row, model, shape);
  return start;
}

}  // namespace moebius
