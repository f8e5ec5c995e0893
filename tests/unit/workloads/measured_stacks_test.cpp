// Whose measured kernels count where a scenario names a framework and no kernels.
#include "workloads/measured_stacks.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "hw/catalog.h"
#include "tests/catch.h"
#include "workloads/cost/cost_source.h"
#include "workloads/cost/op_costs.h"

namespace moebius {
namespace {

std::string first_stack(const Scenario& scenario, const char* chip = "h100-sxm") {
  for (const Profile& profile : profiles_for(scenario, Catalog().accelerator(chip), ""))
    for (const ProfileTable& table : profile.tables)
      if (!table.stored) return table.stack;
  return "";
}

// SGLang's, of experts that are blown up from MXFP4 to BF16.
bool is_blown_up(const ProfileTable& table) {
  return table.stack.starts_with("sglang-") && table.dtype == DType::kBf16 && table.stored == DType::kFp4;
}

std::size_t tables_of(const std::vector<Profile>& profiles) {
  std::size_t count = 0;
  for (const Profile& profile : profiles)
    count += profile.tables.size() - std::count_if(profile.tables.begin(), profile.tables.end(), is_blown_up);
  return count;
}

// The stack of the first table of dense products in FP8.
std::string dense_fp8(const Scenario& scenario, const char* chip) {
  for (const Profile& profile : profiles_for(scenario, Catalog().accelerator(chip), ""))
    for (const ProfileTable& table : profile.tables)
      if (table.dtype == DType::kFp8 &&
          std::find(table.kinds.begin(), table.kinds.end(), "gemm") != table.kinds.end())
        return table.stack;
  return "";
}

TEST_CASE("the kernels of a service's framework come first where none are named") {
  Scenario scenario;
  const std::string otherwise = first_stack(scenario);
  scenario.stacks = {"vllm-", "sglang-"};  // of vLLM there are no tables of this chip
  CHECK(first_stack(scenario).starts_with("sglang-"));
  scenario.stacks = {"trtllm-"};
  CHECK(first_stack(scenario).starts_with("trtllm-"));
  const std::vector<Profile> profiles = profiles_for(scenario, Catalog().accelerator("h100-sxm"), "");
  CHECK(tables_of(profiles) == tables_of(find_profiles(Catalog().accelerator("h100-sxm"), "")));
  scenario.kernels = "sglang-0.5.14";
  CHECK(first_stack(scenario) == otherwise);
}

// H800 has products and attention of its own, of other software, and is based on H100.
TEST_CASE("a framework's kernels come first, be they of the chip that a chip is based on") {
  Scenario scenario;
  scenario.stacks = {"vllm-", "sglang-"};
  CHECK(first_stack(scenario, "h800-sxm").starts_with("sglang-"));
  const std::vector<Profile> profiles = profiles_for(scenario, Catalog().accelerator("h800-sxm"), "");
  CHECK(tables_of(profiles) == tables_of(find_profiles(Catalog().accelerator("h800-sxm"), "")));
}

TEST_CASE("products with one scale a tensor are those of the kernels that have one") {
  Scenario scenario;
  scenario.stacks = {"sglang-"};
  CHECK(dense_fp8(scenario, "h100-sxm") == "sglang-0.5.14");
  CHECK(dense_fp8(scenario, "b200-sxm") == "sglang-0.5.14");  // DeepGEMM with the passes around it
  scenario.stacks = {"vllm-", "sglang-"};
  CHECK(dense_fp8(scenario, "b200-sxm") == "trtllm-1.3.0rc20");
  scenario.fp8_scales = Fp8Scales::kTensor;
  CHECK(dense_fp8(scenario, "h100-sxm") == "sglang-0.5.14+fp8-rowwise");
  CHECK(dense_fp8(scenario, "b200-sxm") == "sglang-0.5.14+fp8-rowwise");
  // Of MI300X there are no tables of servers: hipBLASLt, which vLLM calls, takes half of what Triton does.
  CHECK(dense_fp8(scenario, "mi300x") == "primus-turbo-2026-04+fp8-rowwise");
  CHECK(dense_fp8(scenario, "mi325x") == "primus-turbo-2026-04+fp8-rowwise");
  scenario.stacks = {"trtllm-"};
  CHECK(dense_fp8(scenario, "b200-sxm") == "trtllm-1.3.0rc20+fp8-rowwise");
  scenario.stacks = {"vllm-", "sglang-"}, scenario.fp8_scales = Fp8Scales::kBlock;
  CHECK(dense_fp8(scenario, "mi300x") == "primus-turbo-2026-04");
}

TEST_CASE("a training job's scales choose its kernels, and what the model prices where none are known") {
  Scenario scenario;
  CHECK(product_scales(scenario) == ProductScales::kBlock);
  CHECK(dense_fp8(scenario, "mi300x") == "primus-turbo-2026-04");
  for (const Scaling one : {Scaling::kTensor, Scaling::kHistory}) {
    scenario.plan.scaling = one;
    CHECK(product_scales(scenario) == ProductScales::kWhole);
    CHECK(dense_fp8(scenario, "mi300x") == "primus-turbo-2026-04+fp8-rowwise");
    CHECK(dense_fp8(scenario, "h100-sxm").ends_with("+fp8-rowwise"));
  }
  scenario.plan.scaling = Scaling::kMicro;
  CHECK(product_scales(scenario) == ProductScales::kMicro);
  scenario.kind = ScenarioKind::kServing;  // whose precision says it
  CHECK(product_scales(scenario) == ProductScales::kBlock);
  scenario.fp8_scales = Fp8Scales::kTensor;
  CHECK(product_scales(scenario) == ProductScales::kWhole);
}

// Gradients of weights have tables of their own; of sums that are promoted on the way nothing is added on
// CDNA3.
TEST_CASE("on MI300X an FP8 layer by one scale a tensor is faster than by blocks, back too") {
  const Accelerator chip = Catalog().accelerator("mi300x");
  Scenario scenario;
  const auto seconds = [&](OpKind kind, Scaling scaling) {
    scenario.plan.scaling = scaling;
    const std::vector<Profile> profiles = profiles_for(scenario, chip, "");
    const auto costs =
        make_cost_source(chip, profiles, kernels_for(scenario, profiles), product_scales(scenario));
    return costs
        ->cost({.kind = kind,
                .shape = {.m = 8192, .n = 8192, .k = 8192},
                .dtype = DType::kFp8,
                .cores = chip.cores,
                .promoted_sums = kind != OpKind::kGemm && has_one_scale(scaling)})
        .seconds;
  };
  for (const OpKind kind : {OpKind::kGemm, OpKind::kGemmDgrad, OpKind::kGemmWgrad}) {
    INFO(to_string(kind));
    CHECK(seconds(kind, Scaling::kBlock) > 1.2 * seconds(kind, Scaling::kHistory));
  }
}

// The stack of the first table of experts in four bits under BF16.
std::string four_bit_experts(const Scenario& scenario, const char* chip) {
  for (const Profile& profile : profiles_for(scenario, Catalog().accelerator(chip), ""))
    for (const ProfileTable& table : profile.tables)
      if (table.stored == DType::kFp4 && table.dtype == DType::kBf16) return table.stack;
  return "";
}

bool knows_blown_up(const Scenario& scenario, const char* chip) {
  const std::vector<Profile> profiles = profiles_for(scenario, Catalog().accelerator(chip), "");
  return std::any_of(profiles.begin(), profiles.end(), [](const Profile& profile) {
    return std::any_of(profile.tables.begin(), profile.tables.end(), is_blown_up);
  });
}

// SGLang loads weights in BF16 where ranks have experts whole; its triton_kernels and Marlin do not.
TEST_CASE("on Hopper experts in MXFP4 are TensorRT-LLM's kernels, but for SGLang that loads them in BF16") {
  Scenario scenario;
  for (const std::array<std::string_view, 2>& stacks :
       {std::array<std::string_view, 2>{"vllm-", "sglang-"}, {"sglang-"}, {"trtllm-"}}) {
    scenario.stacks = stacks;
    INFO(stacks.front());
    for (const char* chip : {"h100-sxm", "h200-sxm", "h800-sxm"}) {
      CHECK(four_bit_experts(scenario, chip) == "trtllm-1.3.0rc20");
      CHECK_FALSE(knows_blown_up(scenario, chip));  // which short reductions would be answered by
    }
    CHECK_FALSE(knows_blown_up(scenario, "l40s"));
    CHECK(knows_blown_up(scenario, "b200-sxm"));
  }
  scenario.stacks = {"vllm-", "sglang-"};
  CHECK(four_bit_experts(scenario, "b200-sxm") == "sglang-0.5.14");
  scenario.serving.ep = 2;
  CHECK(four_bit_experts(scenario, "h100-sxm") == "trtllm-1.3.0rc20");
  scenario.stacks = {"sglang-"};
  CHECK(four_bit_experts(scenario, "h100-sxm") == "sglang-0.5.14");
}

// 64 of gpt-oss's experts, cut by 4: H200's memory gives them in 55 us in BF16, in 15 in MXFP4.
TEST_CASE("on Hopper short reductions of experts in MXFP4 do not read them in BF16") {
  const Accelerator chip = Catalog().accelerator("h200-sxm");
  Scenario scenario;
  scenario.stacks = {"vllm-", "sglang-"};
  const auto costs = make_cost_source(chip, profiles_for(scenario, chip, ""), "");
  const auto cost = costs->cost({.kind = OpKind::kGroupedGemm,
                                 .shape = {.m = 256, .n = 2880, .k = 720, .groups = 64},
                                 .dtype = DType::kBf16,
                                 .cores = chip.cores,
                                 .rows = {},
                                 .stored = DType::kFp4});
  CHECK(1e6 * cost.seconds < 50);
  CHECK(1e6 * cost.seconds > 14);
}

// The stack of the first table of experts in FP8.
std::string fp8_experts(const Scenario& scenario, const char* chip) {
  for (const Profile& profile : profiles_for(scenario, Catalog().accelerator(chip), ""))
    for (const ProfileTable& table : profile.tables)
      if (table.dtype == DType::kFp8 && !table.stored && table.name.starts_with("expert GEMMs"))
        return table.stack;
  return "";
}

TEST_CASE("on Blackwell experts that DeepEP brings rows to are DeepGEMM's products") {
  Scenario scenario;
  scenario.stacks = {"sglang-"};
  scenario.serving.dp = scenario.serving.ep = 8;
  scenario.serving.prefill_exchange = scenario.serving.decode_exchange = Algorithm::kRing;
  CHECK(fp8_experts(scenario, "b200-sxm") == "sglang-0.5.14");
  scenario.serving.prefill_exchange = Algorithm::kHierarchical;
  CHECK(fp8_experts(scenario, "b200-sxm") == "sglang-0.5.14");  // who decodes has other kernels
  scenario.serving.decode_exchange = Algorithm::kDirect;
  CHECK(fp8_experts(scenario, "b200-sxm") == "trtllm-1.3.0rc20");
  CHECK(fp8_experts(scenario, "h100-sxm") == "sglang-0.5.14");
  CHECK(dense_fp8(scenario, "b200-sxm") == "sglang-0.5.14");
  scenario.fp8_scales = Fp8Scales::kTensor;
  CHECK(fp8_experts(scenario, "b200-sxm") == "sglang-0.5.14");
  scenario.fp8_scales = Fp8Scales::kBlock;
  scenario.stacks = {"vllm-", "sglang-"};
  CHECK(fp8_experts(scenario, "b200-sxm") == "trtllm-1.3.0rc20");
}

// Rows of 16 experts, or of 8, by the kernels that a job is told.
double grouped_us(const Scenario& scenario, int groups, int n, int k) {
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  const std::vector<Profile> profiles = profiles_for(scenario, chip, "");
  const auto costs = make_cost_source(chip, profiles, kernels_for(scenario, profiles));
  const CostQuery query{.kind = OpKind::kGroupedGemm,
                        .shape = {.m = 32768, .n = n, .k = k, .groups = groups},
                        .dtype = DType::kBf16,
                        .cores = chip.cores,
                        .rows = {}};
  return 1e6 * costs->cost(query).seconds;
}

// SGLang's fused kernel of experts is tuned for some layers and not for others, with rates of 240 and 610
// TFLOP/s beside each other; training cannot run it.
TEST_CASE("a training job that names a server's kernels multiplies experts by a library's") {
  Scenario scenario;
  scenario.kernels = "sglang-0.5.14";
  const double shorter = grouped_us(scenario, 16, 2048, 768);
  const double longer = grouped_us(scenario, 16, 2048, 1536);
  CHECK(shorter < longer);
  CHECK(2 * 32768e-6 * 2048 * 768 / shorter > 450);  // TFLOP/s
  CHECK(grouped_us(scenario, 8, 1536, 2048) < 1.1 * grouped_us(scenario, 16, 1536, 2048));
  scenario.kind = ScenarioKind::kServing;  // which runs what it has, tuned or not
  CHECK(grouped_us(scenario, 16, 2048, 768) > 1.5 * shorter);
}

TEST_CASE("whose kernels of experts a training job names, those count") {
  const std::vector<Profile> profiles = find_profiles(Catalog().accelerator("h100-sxm"), "");
  Scenario scenario;
  CHECK(kernels_for(scenario, profiles).empty());
  scenario.kernels = "trtllm-1.3.0rc20";
  CHECK(kernels_for(scenario, profiles) == "trtllm-1.3.0rc20");
  scenario.kernels = "sglang-0.5.14; grouped_gemm/bf16=sglang-0.5.14";
  const std::string kernels = kernels_for(scenario, profiles);
  CHECK(kernels.starts_with(scenario.kernels));
  CHECK(kernels.find("grouped_gemm/bf16=trtllm") == std::string::npos);
  CHECK(kernels.find("grouped_gemm_dgrad/bf16=trtllm-1.3.0rc20") != std::string::npos);
}

TEST_CASE("8-bit checkpoints are scaled as their families publish them") {
  const ModelCatalog models;
  CHECK(published_scales(models.model("llama-3.1-70b")) == Fp8Scales::kTensor);
  CHECK(published_scales(models.model("qwen3-8b")) == Fp8Scales::kBlock);
  CHECK(published_scales(models.model("mixtral-8x7b")) == Fp8Scales::kTensor);
  CHECK(published_scales(models.model("deepseek-v3")) == Fp8Scales::kBlock);
  Model model;
  CHECK(published_scales(model) == Fp8Scales::kTensor);
  model.experts.routed = 8;
  CHECK(published_scales(model) == Fp8Scales::kBlock);
}

// H200 NVL: 0.90 ps an element of 12 products' operands beside Transformer Engine's casts, 3.3 bytes each
// at 4.8 TB/s; B300: 0.40 ps (NVIDIA/TransformerEngine, docs/examples/gemm_profiling).
TEST_CASE("casts of training by one scale a tensor run at memory's rate, of others as servers' kernels") {
  Scenario scenario;
  scenario.kernels = "trtllm-1.3.0rc20+fp8-rowwise";
  const auto picoseconds = [&](const char* id) {
    const Accelerator chip = Catalog().accelerator(id);
    const std::vector<Profile> profiles = profiles_for(scenario, chip, "");
    const CostQuery cast{.kind = OpKind::kQuantise,
                         .shape = {.m = 15872, .n = 16384},
                         .dtype = DType::kFp8,
                         .cores = chip.cores};
    return 1e12 * make_cost_source(chip, profiles, scenario.kernels)->cost(cast).seconds / (15872.0 * 16384);
  };
  scenario.plan.scaling = Scaling::kHistory;
  CHECK(picoseconds("h200-sxm") == Approx(0.90).epsilon(0.25));
  CHECK(picoseconds("b300-sxm") == Approx(0.40).epsilon(0.25));
  scenario.plan.scaling = Scaling::kBlock;
  CHECK(picoseconds("h100-sxm") > 2);
}

// pytorch/ao issue 2377: without fast accumulation, which is forward alone, 1.1 to 1.2 times as long.
TEST_CASE("products of gradients by one scale a tensor take longer on Hopper, where sums leave the unit") {
  const auto took = [](OpKind kind, Scaling scaling, const char* id) {
    const Accelerator chip = Catalog().accelerator(id);
    const auto source = make_cost_source(chip);
    Fragment fragment;
    Tensor operand{.rows = 8192, .columns = 8192};
    operand.dtype = DType::kFp8, operand.scaling = scaling;
    fragment.tensors = {operand, operand, {.rows = 8192, .columns = 8192}};
    fragment.operands = {0, 1, 2};
    fragment.ops = {{.kind = kind,
                     .dtype = DType::kFp8,
                     .num_inputs = 2,
                     .num_outputs = 1,
                     .shape = {.m = 8192, .n = 8192, .k = 8192}}};
    DistinctCosts distinct;
    return OpCosts(fragment, chip, *source, distinct, {}).at(0, chip.cores).seconds;
  };
  const auto longer = [&](OpKind kind, Scaling scaling, const char* chip) {
    return took(kind, scaling, chip) / took(kind, Scaling::kBlock, chip);
  };
  CHECK(longer(OpKind::kGemmDgrad, Scaling::kHistory, "h100-sxm") == Approx(1.15));
  CHECK(longer(OpKind::kGemmWgrad, Scaling::kTensor, "h100-sxm") == Approx(1.15));
  CHECK(longer(OpKind::kGemm, Scaling::kHistory, "h100-sxm") == Approx(1));
  CHECK(longer(OpKind::kGemmDgrad, Scaling::kHistory, "b200-sxm") == Approx(1));
}

}  // namespace
}  // namespace moebius
