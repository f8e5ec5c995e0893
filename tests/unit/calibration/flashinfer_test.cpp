// FlashInfer's block FP8 products on B200: the law and the rows that were published.
#include "workloads/calibration/flashinfer_products.h"

#include "hw/catalog.h"

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/unit/calibration/stack_cost.h"

namespace moebius {
namespace {

double seconds(const std::string& stacks, std::int64_t m) {
  return seconds_on("b200-sxm", stacks,
                    {.kind = OpKind::kGemm, .shape = {.m = m, .n = 7168, .k = 2048}, .dtype = DType::kFp8});
}

}  // namespace

TEST_CASE("the law of FlashInfer's products meets the published rows") {
  const Accelerator chip = Catalog().accelerator("b200-sxm");
  REQUIRE(published_flashinfer_products().size() == 5);
  for (const ProductTime& row : published_flashinfer_products()) {
    INFO(row.m << " x " << row.n << " x " << row.k);
    CHECK(flashinfer_product_seconds(chip, row.m, row.n, row.k) * 1e6 ==
          Approx(row.microseconds).epsilon(0.025));
  }
}

// 7168 x 2048: 56 strips of columns, 32,768 rows: 1,024 of tokens, 388 waves of 11.6 us x 2/7.
TEST_CASE("products of prompts are told by the variant, those of decoding by the stack it is one of") {
  const std::string base = "sglang-0.5.14; gemm/fp8=trtllm-1.3.0rc20";
  CHECK(seconds(base + "+flashinfer", 64) == seconds(base, 64));
  CHECK(seconds(base + "+flashinfer", 32768) == Approx(388 * 11.6e-6 * 2 / 7).epsilon(0.02));
  CHECK(seconds(base + "+flashinfer", 32768) > 3 * seconds(base, 32768));
}

}  // namespace moebius
