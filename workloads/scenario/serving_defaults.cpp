#include "workloads/scenario/serving_defaults.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace moebius {
namespace {

using Format = std::optional<DType>;

constexpr std::array kServingArithmetic{
    Named<DType>{"bf16", DType::kBf16, ""}, Named<DType>{"fp8", DType::kFp8, ""},
    Named<DType>{"int8", DType::kInt8, "eight-bit integers, scales by row and column"},
    Named<DType>{"fp4", DType::kFp4, "NVFP4: FP8 scales of 16 columns"},
    Named<DType>{"fp32", DType::kFp32, ""}};
constexpr std::array kCaches{Named<DType>{"bf16", DType::kBf16, ""}, Named<DType>{"fp8", DType::kFp8, ""},
                             Named<DType>{"fp32", DType::kFp32, ""}};
constexpr std::array kAttention{Named<DType>{"bf16", DType::kBf16, ""}, Named<DType>{"fp8", DType::kFp8, ""}};
constexpr std::array kExperts{Named<Format>{"gemm", std::nullopt, "as the other products"},
                              Named<Format>{"bf16", DType::kBf16, ""}, Named<Format>{"fp8", DType::kFp8, ""},
                              Named<Format>{"int8", DType::kInt8, ""}, Named<Format>{"fp4", DType::kFp4, ""}};
constexpr std::array kStored{Named<Format>{"gemm", std::nullopt, "as the products compute; BF16 at most"},
                             Named<Format>{"fp8", DType::kFp8, ""},
                             Named<Format>{"fp4", DType::kFp4, "MXFP4 and NVFP4"},
                             Named<Format>{"int4", DType::kInt4, "scales of 128 columns: AWQ, GPTQ"}};

void require_peak(const Scenario& scenario, DType format, const char* pointer, const Document& document) {
  for (const Pool& pool : scenario.cluster->pools) {
    if (pool.accelerator.peak_of(format).value == 0)
      place_at(document, pointer)
          .fail(fmt::format("{} has no native {} arithmetic", pool.accelerator.id, to_string(format)));
  }
}

}  // namespace

const Framework& read_framework(Section& plan) {
  return plan.row("framework", frameworks(),
                  "whose defaults other keys of the plan have: `moebius list frameworks`");
}

constexpr std::array kScales{
    Named<Fp8Scales>{"block", Fp8Scales::kBlock, "of 128 x 128 weights, and of 128 activations"},
    Named<Fp8Scales>{"tensor", Fp8Scales::kTensor, "of a tensor, a column or a token"},
};

Fp8Scales read_formats(Section precision, const Model& model, ServingPlan& plan) {
  plan.gemm = precision.choice<DType>("gemm", kServingArithmetic, DType::kBf16,
                                      "operands of matrix products, and tokens on their way to experts");
  plan.weights =
      precision.choice<Format>("weights", kStored, Format{}, "weights of those products, as they are kept");
  plan.expert_gemm = precision.choice<Format>("experts", kExperts, Format{}, "operands of experts' products");
  plan.expert_weights =
      precision.choice<Format>("expert_weights", kStored, Format{}, "weights of experts, as they are kept");
  plan.kv = precision.choice<DType>("kv", kCaches, DType::kBf16, "the cache");
  plan.attention = precision.choice<DType>("attention", kAttention, DType::kBf16,
                                           "queries, keys and values of prompts as attention multiplies "
                                           "them; \"fp8\" with kv \"fp8\", simulated only");
  if (plan.attention == DType::kFp8 && plan.kv != DType::kFp8)
    precision.place_of("attention")
        .fail(fmt::format(
            "products of 8 bits read a cache of 8 bits: expected kv \"fp8\" with it, found \"{}\"",
            to_string(plan.kv)));
  const Fp8Scales scales = precision.choice<Fp8Scales>(
      "scales", kScales, published_scales(model),
      "what has a scale of its own in 8-bit products; by default as the published "
      "checkpoint of the model");
  precision.allow_only("scales", plan.gemm == DType::kFp8 || plan.expert_gemm == DType::kFp8,
                       "products in \"fp8\"");
  precision.finish();
  return scales;
}

void check_formats_of_pools(const Scenario& scenario, const Document& document) {
  const ServingPlan& plan = scenario.serving;
  require_peak(scenario, plan.gemm, "/plan/precision/gemm", document);
  if (plan.attention == DType::kFp8)
    require_peak(scenario, plan.attention, "/plan/precision/attention", document);
  if (plan.attention == DType::kFp8 && scenario.service.does == PoolRole::kDecode)
    place_at(document, "/plan/precision/attention")
        .fail("prompts come computed: expected \"bf16\" with phase \"decode\"");
  if (plan.expert_gemm) require_peak(scenario, *plan.expert_gemm, "/plan/precision/experts", document);
  const bool experts = scenario.model.experts.routed > 0;
  for (const auto& [given, key] : {std::pair(plan.expert_gemm.has_value(), "experts"),
                                   std::pair(plan.expert_weights.has_value(), "expert_weights")}) {
    if (given && !experts)
      place_at(document, fmt::format("/plan/precision/{}", key))
          .fail(fmt::format("{} has no experts; expected \"gemm\"", scenario.model.id));
  }
}

}  // namespace moebius
