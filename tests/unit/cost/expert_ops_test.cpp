#include "workloads/cost/expert_ops.h"

#include <algorithm>

#include "models/layer_math.h"

#include "hw/error.h"
#include "tests/catch.h"

namespace moebius {
namespace {

const std::vector<std::int32_t> kRows = {100, 0, 28};

ExpertLayer layer(DType dtype) {
  return {.hidden = 4096, .width = 1536, .experts = 128, .active = 8, .dtype = dtype, .stored = {}};
}

std::vector<OpKind> kinds_of(const std::vector<CostQuery>& kernels) {
  std::vector<OpKind> kinds;
  for (const CostQuery& kernel : kernels) kinds.push_back(kernel.kind);
  return kinds;
}

TEST_CASE("the experts of a rank are six kernels, and one more where the tokens are quantised") {
  using K = OpKind;
  CHECK(kinds_of(expert_kernels(layer(DType::kBf16), 64, kRows, 132)) ==
        std::vector<OpKind>{K::kGate, K::kPermute, K::kGroupedGemm, K::kActivation, K::kGroupedGemm,
                            K::kUnpermute});
  CHECK(kinds_of(expert_kernels(layer(DType::kFp8), 64, kRows, 132)) ==
        std::vector<OpKind>{K::kGate, K::kQuantise, K::kPermute, K::kGroupedGemm, K::kActivation,
                            K::kGroupedGemm, K::kUnpermute});
}

TEST_CASE("their products are six operations a row, weight and matrix") {
  double flops = 0;
  for (const CostQuery& kernel : expert_kernels(layer(DType::kBf16), 64, kRows, 132))
    if (is_expert_gemm(kernel)) flops += op_flops(kernel.kind, kernel.shape).value;
  CHECK(flops == Approx(6.0 * 128 * 4096 * 1536));
}

TEST_CASE("weights may be stored in another format; passes are not touched by it") {
  ExpertLayer mixed = layer(DType::kBf16);
  mixed.stored = DType::kFp4;
  for (const CostQuery& kernel : expert_kernels(mixed, 64, kRows, 132)) {
    CHECK(kernel.stored.has_value() == is_expert_gemm(kernel));
    CHECK(kernel.rows.empty() != is_expert_gemm(kernel));
  }
}

TEST_CASE("the last pass reads a row of each copy and writes one of each token") {
  const CostQuery last = expert_kernels(layer(DType::kBf16), 64, kRows, 132).back();
  CHECK(op_bytes(last.kind, last.shape, last.dtype).value == Approx((128.0 + 64) * 4096 * 2));
}

}  // namespace
}  // namespace moebius
