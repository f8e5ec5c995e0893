// Passes over memory that later software fused: what each moves is counted from the code that ran them.
#include "workloads/cost/separate_kernels.h"

#include <catch2/catch.hpp>

#include <tuple>
#include <vector>

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

constexpr std::int64_t kSideRows = 64, kColumns = 256;
constexpr double kElements = kSideRows * kColumns;

CostQuery asked(OpKind kind, int separate) {
  const bool flat = kind == OpKind::kAdam;
  return {kind,
          {.m = flat ? kSideRows * kColumns : kSideRows, .n = flat ? 1 : kColumns, .heads = separate},
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

// 75.1 over 53.5 us, 176.2 over 86.6 (NVIDIA/apex, pull request 1037): 1.40 and 2.03.
TEST_CASE("norms of kernels that read rows twice take as much longer as was measured") {
  const auto longer = [](OpKind kind) { return separate(kind).memory_bytes / fused_bytes(kind); };
  CHECK(longer(OpKind::kNorm) == Approx(1.40).epsilon(0.01));
  CHECK(longer(OpKind::kNormGrad) == Approx(2.03).epsilon(0.03));
}

// Unscale and check 4 + 4, copy of the weights 4; of 16-bit gradients a copy 2 + 4 before; of clipped ones a
// scaling 4 + 4. Their norm is an op of its own.
TEST_CASE(
    "an update in kernels of its own moves 12 bytes more for each parameter, 6 from 16 bits, 8 clipped") {
  const double fused = fused_bytes(OpKind::kAdam);
  CHECK(separate(OpKind::kAdam).memory_bytes == fused + 12 * kElements);
  CHECK(separate(OpKind::kAdam, kSeparateFromBf16).memory_bytes == fused + 18 * kElements);
  CHECK(separate(OpKind::kAdam, kSeparateKernels + kScaledApart).memory_bytes == fused + 20 * kElements);
  CHECK(separate(OpKind::kAdam, kSeparateFromBf16 + kScaledApart).memory_bytes == fused + 26 * kElements);
}

// A pass of 2 bytes in and one out, and its scales, writes the same again.
TEST_CASE("two copies in one pass take a third longer than one") {
  CostQuery both = asked(OpKind::kQuantise, kBothWays), one = asked(OpKind::kQuantise, 0);
  both.dtype = one.dtype = DType::kFp8;
  const Bytes1 source;
  CHECK(separate_kernels_cost(source, both).memory_bytes / source.cost(one).memory_bytes ==
        Approx(4.0 / 3).epsilon(0.01));
}

// A norm moves 2 bytes in, 2 out and one 8-bit copy with its scales; the other copy comes to that.
TEST_CASE("a norm that writes both 8-bit copies moves the bytes of the second one more") {
  CostQuery both = asked(OpKind::kNorm, kWithColumns), one = asked(OpKind::kNorm, 0);
  both.dtype = one.dtype = DType::kFp8;
  const Bytes1 source;
  const double copy = 1 + 1.0 / 32;
  const auto share = [&] {
    return separate_kernels_cost(source, both).memory_bytes / source.cost(one).memory_bytes;
  };
  CHECK(share() == Approx((4 + 2 * copy) / (4 + copy)).epsilon(0.01));
  both.shape.heads += kSeparateKernels;                                       // and reads rows again
  CHECK(share() == Approx(1.4 * (4 + 2 * copy) / (4 + copy)).epsilon(0.02));  // in whole rows
}

// 34 and 13 kernels of eight columns of a token each, read and written in two bytes, beside the gate itself.
TEST_CASE("a router of elementary steps is the gate and 34 kernels forward and 13 back") {
  const double small = 2.0 * 2 * 8 * kSideRows;
  CHECK(separate(OpKind::kGate).seconds == fused_bytes(OpKind::kGate) + 34 * small + 35);
  CHECK(separate(OpKind::kGateGrad).seconds == fused_bytes(OpKind::kGateGrad) + 13 * small + 14);
}

// Weights: 4 bytes an element forward; 4 for the rows, 6 and 2 for the weights back. Sorting again: 4 each
// time.
TEST_CASE("rows go to experts and back in passes of their own") {
  const double to_find = 4 * (2.0 * 2 * 8 * kSideRows);
  const auto more = [](OpKind kind, int how) { return separate(kind, how).memory_bytes - fused_bytes(kind); };
  CHECK(more(OpKind::kPermute, kSeparateKernels) == to_find);
  CHECK(more(OpKind::kPermuteGrad, kSeparateKernels) == 0);
  CHECK(more(OpKind::kUnpermute, kSeparateKernels) == to_find + 4 * kElements);
  CHECK(more(OpKind::kUnpermuteGrad, kSeparateKernels) == 12 * kElements);
  for (const OpKind kind :
       {OpKind::kPermute, OpKind::kPermuteGrad, OpKind::kUnpermute, OpKind::kUnpermuteGrad}) {
    CHECK(more(kind, kSortedTwice) == more(kind, kSeparateKernels) + 4 * kElements);
    CHECK(more(kind, kSortedTwiceFused) == 4 * kElements);
  }
}

TEST_CASE("products one expert after the other are dense products of the rows of each") {
  const auto source = make_cost_source(Catalog().accelerator("h100-sxm"));
  const auto dense = [&](OpKind kind, Shape shape) {
    return source->cost({kind, shape, DType::kBf16, 132, {}}).seconds;
  };
  const std::vector<std::int32_t> rows = {1000, 0, 3000};
  CostQuery uneven{OpKind::kGroupedGemm,
                   {.m = 4000, .n = 4096, .k = 2048, .groups = 3, .heads = kSeparateKernels},
                   DType::kBf16,
                   132,
                   rows};
  CHECK(separate_kernels_cost(*source, uneven).seconds ==
        Approx(dense(OpKind::kGemm, {.m = 1000, .n = 4096, .k = 2048}) +
               dense(OpKind::kGemm, {.m = 3000, .n = 4096, .k = 2048})));
  CostQuery even{OpKind::kGroupedGemmWgrad,
                 {.m = 4096, .n = 2048, .k = 4000, .groups = 4, .heads = kSeparateKernels},
                 DType::kBf16,
                 132,
                 {}};
  CHECK(separate_kernels_cost(*source, even).seconds ==
        Approx(4 * dense(OpKind::kGemmWgrad, {.m = 4096, .n = 2048, .k = 1000})));
}

// Forward 4 + 10 + 8 + 6 bytes an element of what comes out, back 6 + 6 + 4 + 8 + 4 + 8 + 4 of what goes in.
TEST_CASE("biases of experts that are added apart move 68 bytes an element") {
  const auto more = [](OpKind kind, std::int64_t n, std::int64_t k) {
    const auto bytes = [&](int how) {
      const CostQuery query{
          kind, {.m = 64, .n = n, .k = k, .groups = 2, .heads = how}, DType::kBf16, 108, {}};
      return separate_kernels_cost(Bytes1(), query).memory_bytes;
    };
    return bytes(kSeparateWithBias) - bytes(kSeparateKernels);
  };
  CHECK(more(OpKind::kGroupedGemm, 256, 128) == 28 * 64 * 256);
  CHECK(more(OpKind::kGroupedGemmDgrad, 128, 256) == 40 * 64 * 256);
  CHECK(more(OpKind::kGroupedGemmWgrad, 256, 128) == 0);
}

// The result of 2 bytes an element is read again for the sums of its columns, in a kernel of its own.
TEST_CASE("the gradient of a bias behind an activation or a sum is a pass over the op's result") {
  for (const auto& [kind, k, columns] :
       {std::tuple{OpKind::kAdd, 0, 1}, {OpKind::kActivationGrad, 1, 1}, {OpKind::kActivationGrad, 2, 2}}) {
    CostQuery fused = asked(kind, 0), biased = asked(kind, kSumsBias);
    fused.shape.k = biased.shape.k = k;
    CHECK_FALSE(has_separate_kernels(fused));
    REQUIRE(has_separate_kernels(biased));
    const double more = separate_kernels_cost(Bytes1(), biased).seconds - Bytes1().cost(fused).seconds;
    CHECK(more == 2 * columns * kElements + 1);
  }
  CostQuery masked = asked(OpKind::kAdd, kSumsBias);
  masked.shape.k = 2;
  CHECK_FALSE(has_separate_kernels(masked));
}

// Of a product of 64 rows and 128 columns, and of the weight gradient that sums over those rows.
TEST_CASE("a bias apart from its product is a pass over the result, and its gradient one over that of it") {
  const auto more = [](OpKind kind, const Shape& shape) {
    CostQuery fused{.kind = kind, .shape = shape, .dtype = DType::kBf16, .cores = 1};
    CostQuery apart = fused;
    fused.shape.heads = kWithBias;
    apart.shape.heads = kWithBiasApart;
    CHECK_FALSE(has_separate_kernels(fused));
    REQUIRE(has_separate_kernels(apart));
    fused.shape.heads = 0;  // the product alone
    return separate_kernels_cost(Bytes1(), apart).seconds - Bytes1().cost(fused).seconds;
  };
  CHECK(more(OpKind::kGemm, {.m = 64, .n = 128, .k = 32}) == 4 * 64 * 128 + 1);
  CHECK(more(OpKind::kGemmWgrad, {.m = 128, .n = 32, .k = 64}) == 2 * 64 * 128 + 1);
}

// Forward 2 + 4 bytes an element; back 4 for each of the experts and 10, and 2 for each, 4, and 6 for each
// but one.
TEST_CASE("experts that are modules copy slices of rows, more of them the more experts a rank has") {
  const auto more = [](OpKind kind, int how, std::int32_t experts) {
    const auto bytes = [&](int kernels) {
      const CostQuery query{
          kind, {.m = 64, .n = 256, .k = 256, .groups = experts, .heads = kernels}, DType::kBf16, 108, {}};
      return separate_kernels_cost(Bytes1(), query).memory_bytes;
    };
    return (bytes(how) - bytes(kSeparateKernels)) / kElements;
  };
  CHECK(more(OpKind::kGroupedGemm, kTakesSlices, 4) == 0);
  CHECK(more(OpKind::kGroupedGemm, kWritesSlices, 4) == 6);
  CHECK(more(OpKind::kGroupedGemmDgrad, kWritesSlices, 4) == 4 * 4 + 10);
  CHECK(more(OpKind::kGroupedGemmDgrad, kTakesSlices, 4) == 4 * 2 + 4 + 3 * 6);
  CHECK(more(OpKind::kGroupedGemmDgrad, kTakesSlices, 1) == 2 + 4);
  CHECK(more(OpKind::kGroupedGemmWgrad, kTakesSlices, 4) == 0);
}

TEST_CASE("an op that says nothing of kernels is the fused one") {
  for (const OpKind kind :
       {OpKind::kCrossEntropyStats, OpKind::kCrossEntropy, OpKind::kNormGrad, OpKind::kAdam, OpKind::kGate,
        OpKind::kPermute, OpKind::kUnpermuteGrad, OpKind::kGroupedGemm}) {
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

TEST_CASE("the loss under autocast moves 36 bytes an element, in kernels of FP32") {
  const auto source = make_cost_source(Catalog().accelerator("a100-sxm"));
  CostQuery stats = asked(OpKind::kCrossEntropyStats, kAutocastKernels);
  stats.shape.m = 8192, stats.shape.n = 50368;
  CostQuery loss = stats;
  loss.kind = OpKind::kCrossEntropy;
  CHECK(separate_kernels_cost(*source, stats).memory_bytes == 14.0 * 8192 * 50368);
  CHECK(separate_kernels_cost(*source, loss).memory_bytes == 22.0 * 8192 * 50368);
}

// Bytes and kernels as workloads/cost/separate_kernels.h counts them.
TEST_CASE(
    "norms, rotations and activations run operation by operation move what each operation reads and writes") {
  const struct {
    OpKind kind;
    int bytes, kernels;
  } ops[] = {{OpKind::kNorm, 36, 6},       {OpKind::kNormGrad, 68, 10},  {OpKind::kRotary, 20, 3},
             {OpKind::kRotaryGrad, 20, 3}, {OpKind::kActivation, 10, 2}, {OpKind::kActivationGrad, 18, 3}};
  for (const auto& op : ops) {
    CostQuery query = asked(op.kind, kEagerKernels);
    const bool rotary = op.kind == OpKind::kRotary || op.kind == OpKind::kRotaryGrad;
    if (rotary) query.shape.heads = 4, query.shape.head_dim = 64;
    CHECK(has_separate_kernels(query) != rotary);
    const bool activation = op.kind == OpKind::kActivation || op.kind == OpKind::kActivationGrad;
    query.shape.k = rotary ? kEagerKernels : activation ? 2 : 0;
    INFO(to_string(op.kind));
    REQUIRE(has_separate_kernels(query));
    const Cost cost = separate_kernels_cost(Bytes1(), query);
    CHECK(cost.memory_bytes == op.bytes * kElements);
    CHECK(cost.seconds == op.bytes * kElements + op.kernels);
  }
}

// The means' kernels are those of row_means: of squares forward, of projections back.
TEST_CASE("norms of rows that ranks share move what a norm of whole rows does, in two ops") {
  const auto cost = [](OpKind kind, std::int64_t form, int how) {
    CostQuery query = asked(kind, how);
    query.shape.k = form;
    return separate_kernels_cost(Bytes1(), query);
  };
  const auto sum = [&](OpKind norm, std::int64_t form) {
    const Cost means = cost(OpKind::kRowMeans, form, kEagerKernels);
    return means.seconds + cost(norm, kOfSharedRows, kEagerKernels).seconds;
  };
  CHECK(sum(OpKind::kNorm, 0) == cost(OpKind::kNorm, 0, kEagerKernels).seconds);
  CHECK(sum(OpKind::kNormGrad, 1) == cost(OpKind::kNormGrad, 0, kEagerKernels).seconds);
  // Rows are not read again for a mean that is known; weights' gradients are a kernel all the same.
  const auto fused = [](OpKind kind, std::int64_t form) {
    CostQuery query = asked(kind, 0);
    query.shape.k = form;
    return Bytes1().cost(query).memory_bytes;
  };
  const auto more = [&](OpKind kind, std::int64_t form) {
    return cost(kind, form, kSeparateKernels).memory_bytes - fused(kind, form);
  };
  CHECK(more(OpKind::kRowMeans, 0) == 0);
  CHECK(more(OpKind::kRowMeans, 1) == 0);
  CHECK(more(OpKind::kNorm, kOfSharedRows) == 0);
  CHECK(more(OpKind::kNormGrad, kOfSharedRows) == 4 * kElements);
}

TEST_CASE("rows that dispatch puts where experts read them need no kernel, however many there are") {
  for (const OpKind kind : {OpKind::kPermute, OpKind::kUnpermute}) {
    const CostQuery query = asked(kind, kWithinExchange);
    REQUIRE(is_within_exchange(query));
    CHECK_FALSE(is_within_exchange(asked(kind, 0)));
    const Cost none = separate_kernels_cost(Bytes1(), query);
    CHECK(none.seconds == 0);
    CHECK(none.memory_bytes == 0);
  }
}
