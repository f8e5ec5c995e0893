// Chips of which no kernel was measured: whose kernels they are told by, and what a board's power leaves.
#include <algorithm>
#include <cstdint>

#include "hw/catalog.h"
#include "tests/catch.h"
#include "workloads/cost/cost_source.h"

namespace moebius {
namespace {

TEST_CASE("costs name whose kernels they are of, and claim none for a chip of which nothing was measured") {
  const Catalog catalog;
  const auto source = [&](const char* chip) {
    return make_cost_source(catalog.accelerator(chip), "", "")->description();
  };
  CHECK_THAT(source("h100-sxm"), Catch::StartsWith("profile h100-sxm ("));
  CHECK_THAT(source("h800-sxm"), Catch::StartsWith("profile h800-sxm ("));
  CHECK_THAT(source("l20"), Catch::StartsWith("profile l40s, carried to l20 ("));
  CHECK_THAT(source("h100-pcie"), Catch::StartsWith("profile h100-sxm, carried to h100-pcie ("));
  CHECK_THAT(source("gh200-144gb"), Catch::StartsWith("profile h100-sxm, carried to gh200-144gb ("));
  CHECK_THAT(source("rtx-5090"), Catch::StartsWith("profile rtx-pro-6000, carried to rtx-5090 ("));
  CHECK(source("mi355x") == "analytic (cdna4)");
  CHECK(source("a40") == "analytic (ampere-geforce)");
}

// The best BF16 products that were found (stas00/ml-engineering, 2026-08): 1,565 TFLOP/s on MI355X at 1,400
// W, which its energy is set by; 784.9 on MI325X, MI300X on a board of 1,000 W, where MI300X's measured
// kernels of 2026-04 are carried to: a tenth less, as they are of the best found on MI300X itself (640 of
// 672).
TEST_CASE("the power of a board sets what large products of AMD's chips reach") {
  const Catalog catalog;
  const auto best = [&](const char* chip) {
    const Accelerator accelerator = catalog.accelerator(chip);
    const auto source = make_cost_source(accelerator, "", "");
    double most = 0;
    for (const std::int64_t size : {4096, 8192, 16384}) {
      const CostQuery gemm{.kind = OpKind::kGemm,
                           .shape = {.m = size, .n = size, .k = size},
                           .dtype = DType::kBf16,
                           .cores = accelerator.cores,
                           .rows = {}};
      most = std::max(most, 2e-12 * size * size * size / source->cost(gemm).seconds);
    }
    return most;
  };
  CHECK(best("mi355x") == Approx(1565).epsilon(0.01));
  CHECK(best("mi325x") == Approx(784.9).epsilon(0.11));
  CHECK(best("mi350x") < best("mi355x"));
  CHECK(best("mi300x") < best("mi325x"));
}

// The tensor units of CDNA4 and of Blackwell take the scales of MX formats themselves.
TEST_CASE("FP4 products of MI355X take no longer than FP8 ones, which CDNA3 has instead of them") {
  const Catalog catalog;
  const auto seconds = [&](const char* chip, DType dtype) {
    const Accelerator accelerator = catalog.accelerator(chip);
    const CostQuery gemm{.kind = OpKind::kGemm,
                         .shape = {.m = 8192, .n = 8192, .k = 8192},
                         .dtype = dtype,
                         .cores = accelerator.cores,
                         .rows = {}};
    return make_cost_source(accelerator, std::vector<Profile>{})->cost(gemm).seconds;
  };
  CHECK(seconds("mi355x", DType::kFp4) < 0.9 * seconds("mi355x", DType::kFp8));
  CHECK(seconds("mi355x", DType::kFp8) < 0.9 * seconds("mi355x", DType::kBf16));
  CHECK(seconds("mi325x", DType::kFp4) > 0.85 * seconds("mi325x", DType::kFp8));  // without scales of blocks
}

}  // namespace
}  // namespace moebius
