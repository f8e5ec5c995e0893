#include "workloads/scenario/kernel_keys.h"

#include <algorithm>

#include "workloads/scenario/serving_defaults.h"

namespace moebius {
namespace {

// What of the kernels between a projection and its attention is one.
void read_head_kernels(Section& section, const Framework& framework, Scenario& scenario) {
  ServingPlan& plan = scenario.serving;
  plan.fused = section.boolean("fused", framework.fused,
                               "one kernel adds and normalises; one splits queries, keys and values, rotates "
                               "them and fills the cache");
  const bool normed = scenario.model.qk_norm != QkNorm::kNone;
  plan.fused_head_norms = section.boolean(
      "fused_head_norms", framework.fused_head_norms,
      "with `fused`: it also norms queries and keys, for which there is a kernel before it otherwise");
  section.allow_only("fused_head_norms", plan.fused && normed, "\"fused\" and a model that norms its heads");
  plan.fused_append =
      section.boolean("fused_append", normed ? framework.fused_normed_append : framework.fused_append,
                      "with `fused`: it also fills the cache, which a kernel behind it does otherwise");
  section.allow_only("fused_append", plan.fused, "\"fused\"");
}

// Said, or of the framework on the device of each phase.
void read_expert_calls(Section& section, const Framework& framework, Scenario& scenario) {
  EngineKeys& engine = scenario.service.engine;
  engine.expert_calls = framework.expert_calls;
  const bool most = framework.expert_calls == ExpertCalls::kOne;
  const bool said =
      section.boolean("one_expert_call", most,
                      "the host launches the kernels of a layer's experts by one call (fused_moe of "
                      "TensorRT-LLM; FlashInfer under vLLM and SGLang, by default on Blackwell in 8 and "
                      "4 bits)");
  if (section.given("one_expert_call"))
    engine.expert_calls = said ? ExpertCalls::kOne : ExpertCalls::kByKernel;
  const bool counts = scenario.model.experts.routed > 0 && engine.launch != LaunchMode::kHidden;
  section.allow_only("one_expert_call", counts, "launches that are counted, of a model with experts");
}

}  // namespace

void read_kernels(Section& section, const Framework& framework, Scenario& scenario) {
  ServingPlan& plan = scenario.serving;
  scenario.fp8_scales =
      read_formats(section.object("precision", false, "number formats"), scenario.model, plan);
  scenario.weights = read_weights(section);
  read_head_kernels(section, framework, scenario);
  const Model& model = scenario.model;
  const bool normed_dense = model.qk_norm != QkNorm::kNone && model.experts.routed == 0;
  plan.fused_reduction = section.boolean(
      "fused_reduction", framework.fused_reduction && (framework.reduces_normed_dense || !normed_dense),
      "short all-reduces of tensor-parallel ranks add to what they are added to and normalise");
  // Frameworks quantise blocks of FP8, and FP4, in a kernel of their own.
  const bool blocks = scenario.fp8_scales == Fp8Scales::kBlock &&
                      (plan.gemm == DType::kFp8 || plan.expert_gemm == DType::kFp8);
  plan.fused_quantise =
      section.boolean("fused_quantise", !(framework.fused && (blocks || plan.gemm == DType::kFp4)),
                      "norms and activations write what the products behind them read in 8 or 4 bits; "
                      "frameworks quantise apart, but for FP8 with scales of whole tensors");
  const bool reduces_low = plan.fused_reduction && plan.gemm == DType::kFp4;
  plan.quantised_reduction =
      section.boolean("quantised_reduction", framework.quantised_reduction && reduces_low,
                      "with `fused_reduction`: what it norms it also writes in 4 bits");
  plan.quantised_output =
      section.boolean("quantised_output", false,
                      "attention writes its result in the format of the product behind it (scales are known "
                      "beforehand, and the cache is kept in FP8)");
  const bool low = plan.gemm != DType::kBf16,
             low_experts = plan.expert_gemm.value_or(plan.gemm) != DType::kBf16;
  section.allow_only("fused_quantise", low || low_experts, "products in 8 or 4 bits");
  section.allow_only("quantised_output", low, "products in 8 or 4 bits");
  section.allow_only("quantised_reduction", reduces_low, "\"fused_reduction\" and products in 4 bits");
  read_expert_calls(section, framework, scenario);
}

void set_expert_calls(Scenario& scenario) {
  if (!scenario.cluster) return;
  const std::vector<Pool>& pools = scenario.cluster->pools;
  const ExpertCalls calls = scenario.service.engine.expert_calls;
  const auto set = [&](ServingPlan& plan, const Pool& pool) {
    plan.one_expert_call = launches_experts_once(calls, plan, pool.accelerator);
  };
  set(scenario.serving, pools.front());
  bool all = true, any = false;
  for (ServicePhase& phase : scenario.service.phases) {
    set(phase.plan, pools[phase.pool]);
    all = all && phase.plan.one_expert_call;
    any = any || phase.plan.one_expert_call;
  }
  const auto said =
      std::find_if(scenario.settings.begin(), scenario.settings.end(),
                   [](const Setting& setting) { return setting.pointer == "/plan/one_expert_call"; });
  if (said != scenario.settings.end() && !said->given)
    said->value = all == any ? (any ? "true" : "false") : "\"by pool\"";
}

}  // namespace moebius
