// Attention before fused kernels: the scores go through memory between products, softmax and dropout.
#include "workloads/cost/unfused_attention.h"

#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "models/layer_math.h"
#include "workloads/cost/batch_cost.h"

using namespace moebius;

namespace {

// One layer of the 22B model of Korthikanti et al. 2022 on one of eight tensor-parallel A100.
CostQuery layer(OpKind kind, int kernels) {
  return {kind,
          {.m = 8192,
           .k = kernels,
           .groups = 4,
           .heads = 8,
           .kv_heads = 8,
           .head_dim = 96,
           .v_dim = 96,
           .kv = 2048},
          DType::kBf16,
          108,
          {}};
}

constexpr double kScores = 8192.0 * 8 * 2048;

}  // namespace

// Forward: product 2 bytes out, softmax 2 in and 2 out, product 2 in; dropout 2 in, 1 of the mask, 2 out.
// Backward: product 2 out, softmax 4 in and 2 out, three products 2 in each; dropout the same.
TEST_CASE("scores that stand in memory are counted as often as kernels touch them") {
  const auto more = [](OpKind kind, int kernels) {
    return op_bytes(kind, layer(kind, kernels).shape, DType::kBf16).value -
           op_bytes(kind, layer(kind, 0).shape, DType::kBf16).value;
  };
  CHECK(more(OpKind::kAttention, 1) == 8 * kScores);
  CHECK(more(OpKind::kAttention, 2) == 13 * kScores);
  CHECK(more(OpKind::kAttentionGrad, 1) == 14 * kScores);
  CHECK(more(OpKind::kAttentionGrad, 2) == 19 * kScores);
}

// A causal kernel passes over half of the scores, others over all: two products forward, four backward.
TEST_CASE("kernels of their own multiply masked scores too") {
  const auto flops = [](OpKind kind) { return op_flops(kind, layer(kind, 1).shape).value; };
  CHECK(flops(OpKind::kAttention) == 2 * 2 * kScores * 96);
  CHECK(flops(OpKind::kAttentionGrad) == 4 * 2 * kScores * 96);
}

// AIConfigurator's mla_bmm, A100, 128 heads of 2,048 tokens: 371 us (SGLang) to columns of 512 from 128, 242
// us (TensorRT-LLM) to 128 from 512. The model alone, which is of experts, says 274 and 192.
TEST_CASE("products by heads take what batched ones were measured to take") {
  const Accelerator chip = Catalog().accelerator("a100-sxm");
  const CostQuery queries{OpKind::kAbsorbQueries,
                          {.m = 2048, .n = 512, .k = 64, .heads = 128, .head_dim = 192},
                          DType::kBf16,
                          108,
                          {}};
  const CostQuery values{
      OpKind::kAbsorbedValues, {.m = 2048, .n = 512, .heads = 128, .v_dim = 128}, DType::kBf16, 108, {}};
  CHECK(make_cost_source(chip, "", "sglang-0.5.10")->cost(queries).seconds == Approx(371.2e-6).epsilon(0.15));
  CHECK(make_cost_source(chip, "", "trtllm-1.0.0")->cost(values).seconds == Approx(242.3e-6).epsilon(0.08));
}

// What another layout of its operands does to a product of the same library is less than what the model
// misses.
TEST_CASE("a weight gradient in 16 bits takes what a product of its sizes takes, and its sum") {
  const auto source = make_cost_source(Catalog().accelerator("a100-sxm"), "", "sglang-0.5.10");
  const Shape shape{.m = 6144, .n = 8192, .k = 8192, .groups = 1};
  const double product = source->cost({OpKind::kGemm, shape, DType::kBf16, 108, {}}).seconds;
  const Cost gradient = source->cost({OpKind::kGemmWgrad, shape, DType::kBf16, 108, {}});
  CHECK(gradient.origin != Origin::kAnalytic);
  CHECK(gradient.seconds == Approx(product).epsilon(0.01));
}

TEST_CASE("attention in kernels of its own takes longer than its bytes, and longest with dropout") {
  const Catalog catalog;
  const Accelerator chip = catalog.accelerator("a100-sxm");
  const auto source = make_cost_source(chip);
  for (const OpKind kind : {OpKind::kAttention, OpKind::kAttentionGrad}) {
    const double flash = source->cost(layer(kind, 0)).seconds;
    const double apart = unfused_attention_cost(*source, layer(kind, 1)).seconds;
    const double dropped = unfused_attention_cost(*source, layer(kind, 2)).seconds;
    const double bytes = op_bytes(kind, layer(kind, 1).shape, DType::kBf16).value;
    CHECK(apart > bytes / chip.memory_rate.value);
    CHECK(apart > flash);
    CHECK(dropped - apart == Approx(5 * kScores / (chip.memory_rate.value * 0.9)).epsilon(0.1));
  }
}

// Sequences packed into rows, all of one length: the same kernels over the same scores as rows of that
// length.
TEST_CASE("packed sequences of equal length take what whole rows of that length take") {
  const Accelerator chip = Catalog().accelerator("a100-sxm");
  const auto source = make_cost_source(chip);
  Batch batch;
  batch.page_tokens = 0;
  batch.sequences.resize(4);
  for (BatchSequence& sequence : batch.sequences) sequence.prompt = sequence.count = 2048;
  Fragment fragment;
  fragment.batches.push_back(std::make_shared<const Batch>(batch));
  for (const int kernels : {0, 1, 2})
    for (const OpKind kind : {OpKind::kAttention, OpKind::kAttentionGrad}) {
      const CostQuery query = layer(kind, kernels);
      const Cost whole =
          is_unfused_attention(query) ? unfused_attention_cost(*source, query) : source->cost(query);
      Op op;
      op.kind = kind, op.batch = 0;
      const Cost packed = batch_cost(*source, query, fragment, op);
      CHECK(packed.seconds == Approx(whole.seconds));
      CHECK(packed.memory_bytes == Approx(whole.memory_bytes));
    }
}

namespace {

// One, two and three queries take 3, 2 and 4 s; the error says which it was.
class ByQueries : public CostSource {
 public:
  Cost cost(const CostQuery& query) const override {
    constexpr double kSeconds[] = {0, 3, 2, 4};
    const std::int64_t queries = query.shape.m / query.shape.groups;
    Cost cost;
    cost.seconds = kSeconds[queries];
    cost.error = static_cast<float>(queries);
    return cost;
  }
  std::string description() const override { return "by queries"; }
};

}  // namespace

// 4 s are less than the 5 of the sets before.
TEST_CASE("of a batch the set that takes longest says where its cost is known from") {
  Batch batch;
  batch.page_tokens = 16;
  for (const std::int32_t queries : {1, 2, 3}) {
    batch.sequences.emplace_back();
    batch.sequences.back().past = 8;
    batch.sequences.back().count = queries;
  }
  Fragment fragment;
  fragment.batches.push_back(std::make_shared<const Batch>(batch));
  Op op;
  op.kind = OpKind::kPagedAttention, op.batch = 0;
  CostQuery query;
  query.kind = OpKind::kPagedAttention;
  const Cost cost = batch_cost(ByQueries(), query, fragment, op);
  CHECK(cost.seconds == 9);
  CHECK(cost.error == 3);
}
