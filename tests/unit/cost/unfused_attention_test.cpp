// Attention before fused kernels: the scores go through memory between products, softmax and dropout.
#include "workloads/cost/unfused_attention.h"

#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "models/layer_math.h"

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
