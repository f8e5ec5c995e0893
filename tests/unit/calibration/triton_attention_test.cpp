// Triton's FlashAttention on A100: the law beside the times it stands for, and the stack that a scenario
// names.
#include "workloads/calibration/triton_attention.h"

#include <algorithm>
#include <cmath>

#include "hw/catalog.h"
#include "tests/catch.h"
#include "tests/unit/calibration/stack_cost.h"

namespace moebius {
namespace {

double seconds(OpKind kind, const std::string& stacks) {
  return seconds_on(
      "a100-sxm", stacks,
      {.kind = kind,
       .shape =
           {.m = 16384, .groups = 8, .heads = 16, .kv_heads = 16, .head_dim = 128, .v_dim = 128, .kv = 2048},
       .dtype = DType::kBf16});
}

}  // namespace

TEST_CASE("Triton's FlashAttention by the law of its tiles takes the published times") {
  const Accelerator chip = Catalog().accelerator("a100-sxm");
  for (const AttentionTime& row : published_triton_attention()) {
    const double told =
        triton_attention_seconds(chip, {row.backward, true, 4, row.keys, row.heads, row.head_dim}) * 1e3;
    INFO((row.backward ? "backward " : "forward ")
         << row.heads << " heads of " << row.head_dim << ", " << row.keys);
    CHECK(std::abs(told / row.milliseconds - 1) < (row.head_dim == 128 ? 0.012
                                                   : row.keys < 1024   ? 0.14
                                                                       : 0.1));
  }
  REQUIRE(published_triton_attention().size() == 42);
}

TEST_CASE("Triton's FlashAttention counts where its stack is named") {
  const std::string named =
      "sglang-0.5.10; attention/bf16=flash-attention-triton; attention_grad/bf16=flash-attention-triton";
  for (const OpKind kind : {OpKind::kAttention, OpKind::kAttentionGrad}) {
    const double alone = triton_attention_seconds(Catalog().accelerator("a100-sxm"),
                                                  {kind == OpKind::kAttentionGrad, true, 8, 2048, 16, 128});
    CHECK(seconds(kind, named) > 0.95 * alone);
    CHECK(seconds(kind, named) < 1.13 * alone);
    CHECK(seconds(kind, "sglang-0.5.10") < 0.8 * seconds(kind, named));
  }
}

}  // namespace moebius
