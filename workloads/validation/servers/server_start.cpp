#include "workloads/validation/servers/server_start.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/scenario/engine_keys.h"
#include "workloads/validation/servers/server_rules.h"

namespace moebius {
namespace {

constexpr const char* kSglang = "sglang-0.5.14";
constexpr const char* kTensorRt = "trtllm-1.3.0rc20";

bool blackwell(const ServerRow& row) {
  return row.system.starts_with("b");
}

// What fixes whose kernels compute, beside the row's system, backend and format.
struct KernelSwitches {
  bool per_tensor = false;  // scales of whole tensors
  bool generated_experts = false, deep_gemm = false;
};

// Dense products on Blackwell. FP4: SGLang's kernels have no loop over k that waits for each of its parts, as
// those of TensorRT-LLM's table (22 us for k 8192 and 8 us for k 1024, of whichever n), which the servers did
// not run: theirs were tuned. FP8 by blocks: SGLang's table is of DeepGEMM with the passes that pack its
// scales, 15 us where the same product alone takes 8 in TensorRT-LLM's; servers that switched it off ran
// FlashInfer's (SGLANG_ENABLE_FLASHINFER_GEMM) or CUTLASS's.
std::string dense_on_blackwell(const ServerRow& row, bool tensor_rt, bool deep_gemm) {
  if (!blackwell(row)) return "";
  if (tensor_rt && row.gemm == "nvfp4") return fmt::format("; gemm/fp4={}", kSglang);
  if (tensor_rt || deep_gemm || !row.gemm.starts_with("fp8")) return "";
  return fmt::format("; gemm/fp8={}{}", kTensorRt, row.backend == "sglang" ? "+flashinfer" : "");
}

// Checkpoints with one scale a tensor have those of activations, too (ModelOpt's input_scale), so that
// quantising is one pass (static_quantize_e4m3_per_tensor), not the two that the products' table was measured
// with.
//
// There are no tables of vLLM's kernels: most are SGLang's too. On Hopper its MXFP4 experts are not: Marlin,
// as TensorRT-LLM's kernels there, blows weights up to BF16 in registers. So does what SGLang runs where each
// rank has columns of all experts; its tables are of weights that are loaded in BF16 (measured_stacks.cpp).
// TensorRT-LLM's generated experts are in SGLang by FlashInfer, and its tables tell them, beside Triton's of
// models whose routing it does not leave to those; TensorRT-LLM's own tell CUTLASS and DeepGEMM.
std::string kernels_of(const ServerRow& row, const Model& model, const KernelSwitches& switches) {
  const bool mxfp4 = model.id.starts_with("gpt-oss") && !blackwell(row);
  const bool tensor_rt = row.backend == "trtllm" || (row.backend == "vllm" && mxfp4);
  std::string kernels = tensor_rt ? kTensorRt : kSglang;
  if (switches.per_tensor) return fmt::format("{0}+fp8-rowwise; quantise/fp8={0}", kernels);
  const int ranks_of_experts = row.apart() ? row.decode.moe_ep : row.both.moe_ep;
  if (row.backend == "sglang" && mxfp4 && ranks_of_experts <= 1)
    kernels += fmt::format("; grouped_gemm/bf16={}", kTensorRt);
  if (switches.generated_experts)
    kernels += row.gemm == "nvfp4" ? fmt::format("; grouped_gemm/fp4={}", kSglang)
                                   : fmt::format("; grouped_gemm/fp8={}+generated", kSglang);
  return kernels + dense_on_blackwell(row, tensor_rt, switches.deep_gemm);
}

std::string text_of(const std::optional<Value>& object) {
  return object ? to_json(*object) : "";
}

}  // namespace

bool keeps_fp8(const ServerRow& row, const Model& model) {
  const std::vector<ServerRule>& rules = shipped_server_rules();
  return std::any_of(rules.begin(), rules.end(), [&](const ServerRule& rule) {
    return rule.fp8_cache && rule.when.met(row, model.id, 1);
  });
}

bool keeps_whole_experts(const ServerRow& row, const Model& model) {
  const std::vector<ServerRule>& rules = shipped_server_rules();
  return std::any_of(rules.begin(), rules.end(), [&](const ServerRule& rule) {
    return rule.whole_experts && rule.when.met(row, model.id, 1);
  });
}

ServerStart server_start(const ServerRow& row, const Model& model, const ServerShape& shape) {
  ServerStart start;
  KernelSwitches switches{.per_tensor = shape.per_tensor};
  std::optional<Value> scheduler, speculative;
  for (const ServerRule& rule : shipped_server_rules()) {
    if (!rule.when.met(row, model.id, shape.replicas)) continue;
    if (rule.token_budget)
      start.token_budget = rule.token_budget->of(row.input, shape.batch, shape.prompt_replicas);
    if (rule.max_batch > 0) start.max_batch = rule.max_batch;
    if (rule.memory_share > 0) start.memory_share = rule.memory_share;
    if (rule.users_without > 0) start.max_batch = std::max(1, row.users - rule.users_without);
    if (rule.users_a_slot > 0)
      start.max_batch = slots_of(rule.users_a_slot, row.users, shape.replicas * row.decode.workers);
    switches.generated_experts |= rule.generated_experts;
    switches.deep_gemm |= rule.deep_gemm;
    start.fused_shared_experts |= rule.fused_shared_experts;
    if (rule.fused_reduction) start.fused_reduction = rule.fused_reduction;
    start.quantised_output |= rule.quantised_output;
    if (rule.scheduler) scheduler = scheduler ? merged(*scheduler, *rule.scheduler) : *rule.scheduler;
    if (rule.speculative) speculative = rule.speculative;
  }
  if (row.apart() && scheduler) drop_joining_keys(*scheduler);
  start.kernels = kernels_of(row, model, switches);
  start.scheduler = text_of(scheduler);
  for (const char* key : {"captured_prompts", "host_per_launch"})
    if (const Value* given = scheduler ? scheduler->find(key) : nullptr)
      start.launches += fmt::format("{} {} ", key, to_json(*given));
  start.speculative = text_of(speculative);
  return start;
}

}  // namespace moebius
