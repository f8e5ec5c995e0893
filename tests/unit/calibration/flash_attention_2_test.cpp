// FlashAttention-2 on Hopper: the law beside the figures it stands for, and the stack that a scenario names.
#include "workloads/calibration/flash_attention_2.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hw/catalog.h"
#include "tests/catch.h"
#include "tests/unit/calibration/stack_cost.h"
#include "workloads/calibration/harvest.h"
#include "workloads/cost/analytic.h"
#include "workloads/cost/table.h"

namespace moebius {
namespace {

// Of 16,384 tokens and heads that have 2,048 columns together, as the figures are of.
double teraflops(const Accelerator& chip, const AttentionRate& row) {
  const AttentionSize size{row.backward, row.causal,          16384 / row.keys,
                           row.keys,     2048 / row.head_dim, row.head_dim};
  const double pairs = 16384.0 * static_cast<double>(row.keys) / (row.causal ? 2 : 1);
  return 4 * pairs * 2048 * (row.backward ? 2.5 : 1) / flash_attention_2_seconds(chip, size) / 1e12;
}

double seconds(OpKind kind, const std::string& stacks) {
  return seconds_on(
      "h100-sxm", stacks,
      {.kind = kind,
       .shape =
           {.m = 8192, .groups = 1, .heads = 16, .kv_heads = 4, .head_dim = 128, .v_dim = 128, .kv = 8192},
       .dtype = DType::kBf16});
}

}  // namespace

TEST_CASE("FlashAttention-2 by the law of its tiles goes at the published rates") {
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  std::vector<double> errors;
  for (const AttentionRate& row : published_flash_attention_2()) {
    const double error = std::abs(teraflops(chip, row) / row.tflops - 1);
    INFO((row.backward ? "backward" : "forward")
         << (row.causal ? " causal " : " ") << row.head_dim << " " << row.keys);
    CHECK(error < (row.keys >= 1024 ? 0.09 : 0.14));
    errors.push_back(error);
  }
  REQUIRE(errors.size() == 48);
  std::nth_element(errors.begin(), errors.begin() + 24, errors.end());
  CHECK(errors[24] < 0.01);
}

// The law knows nothing of heads that share their keys, and so does its table.
TEST_CASE("the table tells what the law does, however many heads share their keys") {
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  Harvest harvest{chip, "", {}};
  harvest.profile.accelerator = chip.id;
  harvest.profile.reference = chip;
  read_flash_attention_2(harvest);
  const AnalyticModel model(chip);
  const MeasuredTables tables({harvest.profile}, "flash-attention-2");
  for (const bool backward : {false, true})
    for (const std::int32_t heads : {2, 8, 16, 24, 32, 64, 96})
      for (const std::int32_t shared : {1, 2, 8}) {
        if (heads % shared != 0) continue;
        for (const std::int64_t keys : {2048, 8192}) {
          const CostQuery query{.kind = backward ? OpKind::kAttentionGrad : OpKind::kAttention,
                                .shape = {.m = keys,
                                          .groups = 1,
                                          .heads = heads,
                                          .kv_heads = heads / shared,
                                          .head_dim = 128,
                                          .v_dim = 128,
                                          .kv = keys},
                                .cores = chip.cores};
          INFO((backward ? "backward " : "forward ") << heads << " heads, " << shared << " share, " << keys);
          const auto cost = tables.cost(model, query, Clocks::kBurst);
          REQUIRE(cost);
          CHECK(cost->seconds ==
                Approx(flash_attention_2_seconds(chip, {backward, true, 1, keys, heads, 128})).epsilon(0.1));
        }
      }
}

// A chip under continuous load is slower than in a benchmark, by what its power limit takes.
TEST_CASE("it counts where its stack is named, and nowhere else") {
  const std::string named =
      "sglang-0.5.14; attention/bf16=flash-attention-2; attention_grad/bf16=flash-attention-2";
  const Accelerator chip = Catalog().accelerator("h100-sxm");
  for (const bool backward : {false, true}) {
    const OpKind kind = backward ? OpKind::kAttentionGrad : OpKind::kAttention;
    const double alone = flash_attention_2_seconds(chip, {backward, true, 1, 8192, 16, 128});
    CHECK(seconds(kind, named) > 0.98 * alone);
    CHECK(seconds(kind, named) < 1.13 * alone);
  }
  for (const OpKind kind : {OpKind::kAttention, OpKind::kAttentionGrad}) {
    CHECK(seconds(kind, "") < 0.75 * seconds(kind, named));
    CHECK(seconds(kind, "sglang-0.5.14") < 0.75 * seconds(kind, named));
  }
}

}  // namespace moebius
