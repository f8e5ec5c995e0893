// Passes over memory that later software fused: what each moves is counted from the code that ran them.
#include "workloads/cost/separate_kernels.h"

#include <catch2/catch.hpp>

#include "hw/catalog.h"
#include "models/layer_math.h"

using namespace moebius;

namespace {

// A cost that is the bytes of the kernel, a second for each, and a whole second for each kernel beside.
class Bytes1 : public CostSource {
 public:
  Cost cost(const CostQuery& query) const override {
    const double bytes = op_bytes(query.kind, query.shape, query.dtype).value;
    return {.seconds = bytes + 1, .memory_bytes = bytes};
  }
  std::string description() const override { return "bytes"; }
};

constexpr std::int64_t kRows = 64, kColumns = 256;
constexpr double kElements = kRows * kColumns;

CostQuery asked(OpKind kind, int separate) {
  const bool flat = kind == OpKind::kAdam;
  return {kind,
          {.m = flat ? kRows * kColumns : kRows, .n = flat ? 1 : kColumns, .heads = separate},
          flat ? DType::kFp32 : DType::kBf16,
          108,
          {}};
}

Cost separate(OpKind kind, int how = kSeparateKernels) {
  return separate_kernels_cost(Bytes1(), asked(kind, how));
}

double fused_bytes(OpKind kind) {
  return Bytes1().cost(asked(kind, 0)).memory_bytes;
}

}  // namespace

// Forward: copy to FP32 2 + 4, maximum 4, difference 4 + 4, exponential 4 + 4, sum 4; then quotient 4 + 4,
// product with the gradient 4 + 4, copy back 4 + 2.
TEST_CASE("a loss over FP32 logits moves 52 bytes an element in eight kernels") {
  const Cost forward = separate(OpKind::kCrossEntropyStats), back = separate(OpKind::kCrossEntropy);
  CHECK(forward.memory_bytes == 30 * kElements);
  CHECK(back.memory_bytes == 22 * kElements);
  CHECK(forward.seconds + back.seconds == 52 * kElements + 8);
}

TEST_CASE("a norm's own gradient reads both operands once more when it is a kernel of its own") {
  const Cost cost = separate(OpKind::kNormGrad);
  CHECK(cost.memory_bytes == fused_bytes(OpKind::kNormGrad) + 2 * 2 * kElements);
  CHECK(cost.seconds == cost.memory_bytes + 2);
}

// Unscale and check 4 + 4, norm 4, scale 4 + 4, copy of the weights 4; of 16-bit gradients a copy 2 + 4
// before.
TEST_CASE("an update in kernels of its own moves 24 bytes more for each parameter and 30 from 16 bits") {
  const double fused = fused_bytes(OpKind::kAdam);
  CHECK(separate(OpKind::kAdam).memory_bytes == fused + 24 * kElements);
  CHECK(separate(OpKind::kAdam, kSeparateFromBf16).memory_bytes == fused + 30 * kElements);
}

TEST_CASE("an op that says nothing of kernels is the fused one") {
  for (const OpKind kind :
       {OpKind::kCrossEntropyStats, OpKind::kCrossEntropy, OpKind::kNormGrad, OpKind::kAdam}) {
    CHECK_FALSE(has_separate_kernels(asked(kind, 0)));
    CHECK(has_separate_kernels(asked(kind, kSeparateKernels)));
  }
  CHECK_FALSE(has_separate_kernels(asked(OpKind::kAttention, 8)));
}

TEST_CASE("kernels of their own take at least what their bytes take on an A100") {
  const Accelerator chip = Catalog().accelerator("a100-sxm");
  const auto source = make_cost_source(chip);
  CostQuery loss = asked(OpKind::kCrossEntropyStats, kSeparateKernels);
  loss.shape.m = 8192, loss.shape.n = 6400;  // 22B of Korthikanti et al. 2022 on eight ranks
  const Cost cost = separate_kernels_cost(*source, loss);
  CHECK(cost.memory_bytes == 30.0 * 8192 * 6400);
  CHECK(cost.seconds > cost.memory_bytes / chip.memory_rate.value);
  CHECK(cost.seconds < 1.3 * cost.memory_bytes / chip.memory_rate.value);
}
