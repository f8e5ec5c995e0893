#include "workloads/cost/separate_kernels.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "models/layer_math.h"
#include "workloads/cost/kernel_sum.h"

namespace moebius {
namespace {

bool is_loss(OpKind kind) {
  return kind == OpKind::kCrossEntropyStats || kind == OpKind::kCrossEntropy;
}

bool is_permutation(OpKind kind) {
  return kind == OpKind::kPermute || kind == OpKind::kPermuteGrad || kind == OpKind::kUnpermute ||
         kind == OpKind::kUnpermuteGrad;
}

bool is_norm(OpKind kind) {
  return kind == OpKind::kNorm || kind == OpKind::kNormGrad || kind == OpKind::kRowMeans;
}

bool is_gate(OpKind kind) {
  return kind == OpKind::kGate || kind == OpKind::kGateGrad;
}

OpKind of_one_expert(OpKind grouped) {
  if (grouped == OpKind::kGroupedGemm) return OpKind::kGemm;
  return grouped == OpKind::kGroupedGemmDgrad ? OpKind::kGemmDgrad : OpKind::kGemmWgrad;
}

class SeparateKernels {
 public:
  SeparateKernels(const CostSource& source, const CostQuery& query) : source_(source), query_(query) {}

  // Moves so many bytes of each element.
  void pass(std::int64_t bytes) { pass_over(query_.shape.m, query_.shape.n, bytes); }

  // kSplit reads and writes two bytes of each element of its own.
  void pass_over(std::int64_t rows, std::int64_t columns, std::int64_t bytes) {
    constexpr std::int64_t kOfSplit = 4;
    add({.kind = OpKind::kSplit,
         .shape = {.m = std::max<std::int64_t>(1, rows * bytes / kOfSplit), .n = columns},
         .dtype = DType::kBf16,
         .cores = query_.cores});
  }

  // With so many times its rows: where a kernel takes longer for each.
  void op_itself(double rows = 1) {
    CostQuery op = query_;
    op.shape.heads = 0;
    op.shape.m = static_cast<std::int64_t>(static_cast<double>(op.shape.m) * rows);
    add(op);
  }

  // So many of which only the start is seen.
  void small(int kernels) {
    const Cost one = source_.cost({.kind = OpKind::kSplit,
                                   .shape = {.m = query_.shape.m, .n = kColumnsOfSmall},
                                   .dtype = DType::kBf16,
                                   .cores = query_.cores});
    for (int i = 0; i < kernels; ++i) sum_.add(one);
  }

  // Of an expert with so many rows; none has no kernel.
  void product(std::int64_t rows) {
    if (rows == 0) return;
    CostQuery one = query_;
    one.kind = of_one_expert(query_.kind);
    one.shape.heads = one.shape.groups = 0;
    (query_.kind == OpKind::kGroupedGemmWgrad ? one.shape.k : one.shape.m) = rows;
    one.rows = {};
    add(one);
  }

  Cost sum() const { return sum_.sum(); }

 private:
  static constexpr std::int64_t kColumnsOfSmall = 8;

  void add(const CostQuery& kernel) { sum_.add(source_.cost(kernel)); }

  const CostSource& source_;
  const CostQuery& query_;
  KernelSum sum_;
};

void add_products(SeparateKernels& kernels, const CostQuery& query) {
  if (!query.rows.empty()) {
    for (const std::int32_t rows : query.rows) kernels.product(rows);
    return;
  }
  const Shape& s = query.shape;
  const std::int64_t rows = query.kind == OpKind::kGroupedGemmWgrad ? s.k : s.m;
  for (int expert = 0; expert < s.groups; ++expert)
    kernels.product(rows * (expert + 1) / s.groups - rows * expert / s.groups);
}

void add_bias(SeparateKernels& kernels, const CostQuery& query) {
  if (query.kind == OpKind::kGroupedGemmWgrad) return;
  const bool back = query.kind == OpKind::kGroupedGemmDgrad;
  const Shape& s = query.shape;
  const std::int64_t rows =
      query.rows.empty() ? s.m : std::accumulate(query.rows.begin(), query.rows.end(), std::int64_t{0});
  for (const int bytes : back ? std::vector{6, 6, 4, 8, 4, 8, 4} : std::vector{4, 10, 8, 6})
    kernels.pass_over(rows, back ? s.k : s.n, bytes);
}

void add_slices(SeparateKernels& kernels, const CostQuery& query) {
  const Shape& s = query.shape;
  const bool writes = s.heads == kWritesSlices;
  const std::int64_t columns = query.kind == OpKind::kGroupedGemmDgrad && writes ? s.k : s.n;
  const auto pass = [&](int bytes) { kernels.pass_over(s.m, columns, bytes); };
  if (query.kind == OpKind::kGroupedGemm && writes) pass(2), pass(4);
  if (query.kind != OpKind::kGroupedGemmDgrad) return;
  for (int expert = 0; expert < s.groups; ++expert) {
    pass(writes ? 4 : 2);
    if (!writes && expert > 0) pass(6);
  }
  pass(writes ? 10 : 4);
}

void add_permutation(SeparateKernels& kernels, const CostQuery& query) {
  constexpr int kToFindRows = 4;
  kernels.op_itself();
  if (query.shape.heads == kSortedTwiceFused) return kernels.pass(4);
  if (query.kind == OpKind::kPermute || query.kind == OpKind::kUnpermute) kernels.small(kToFindRows);
  if (query.kind == OpKind::kUnpermute) kernels.pass(4);
  if (query.kind == OpKind::kUnpermuteGrad) {
    for (const int bytes : {4, 6, 2}) kernels.pass(bytes);
  }
  if (query.shape.heads == kSortedTwice) kernels.pass(4);
}

// Bytes of each kernel, an element.
void add_loss(SeparateKernels& kernels, const CostQuery& query) {
  const bool stats = query.kind == OpKind::kCrossEntropyStats;
  std::vector<int> passes;
  if (query.shape.heads == kAutocastKernels) {
    passes = stats ? std::vector{6, 8} : std::vector{4, 12, 6};
  } else {
    passes = stats ? std::vector{6, 4, 8, 8, 4} : std::vector{8, 8, 6};
  }
  for (const int bytes : passes) kernels.pass(bytes);
}

bool is_rotary(OpKind kind) {
  return kind == OpKind::kRotary || kind == OpKind::kRotaryGrad;
}

bool is_eager(const CostQuery& query) {
  if (is_rotary(query.kind)) return query.shape.k == kEagerKernels;
  const bool activation = query.kind == OpKind::kActivation || query.kind == OpKind::kActivationGrad;
  return (activation || is_norm(query.kind)) && query.shape.heads == kEagerKernels;
}

bool sums_bias(const CostQuery& query) {
  const bool adds = query.kind == OpKind::kAdd && query.shape.k == 0;
  return (adds || query.kind == OpKind::kActivationGrad) && query.shape.heads == kSumsBias;
}

bool has_bias_apart(const CostQuery& query) {
  const bool product = query.kind == OpKind::kGemm || query.kind == OpKind::kGemmWgrad;
  return product && query.shape.heads == kWithBiasApart;
}

bool writes_columns(const CostQuery& query) {
  return (is_norm(query.kind) || query.kind == OpKind::kActivation) && query.shape.heads >= kWithColumns;
}

// Against those of an op that writes one 8-bit copy.
double bytes_with_columns(const CostQuery& query) {
  const double copy = static_cast<double>(query.shape.m * query.shape.n) * element_bytes(query.dtype);
  return 1 + copy / op_bytes(query.kind, query.shape, query.dtype).value;
}

// Of rows that ranks share: the means' kernels are those of row_means, the norm's the rest.
std::vector<int> eager_norm(OpKind kind, std::int64_t form) {
  const bool shared = form == kOfSharedRows;
  if (kind == OpKind::kRowMeans) return form == 1 ? std::vector{4, 6, 12, 4} : std::vector{6, 8, 4};
  if (kind == OpKind::kNorm) return shared ? std::vector{8, 6, 4} : std::vector{6, 8, 4, 8, 6, 4};
  return shared ? std::vector{6, 2, 8, 8, 12, 6} : std::vector{4, 6, 2, 6, 8, 12, 4, 8, 12, 6};
}

// Bytes of each kernel, an element.
void add_eager(SeparateKernels& kernels, OpKind kind, std::int64_t form) {
  std::vector<int> passes;
  if (is_norm(kind)) passes = eager_norm(kind, form);
  if (is_rotary(kind)) passes = {6, 8, 6};
  if (kind == OpKind::kActivation) passes = {4, 6};
  if (kind == OpKind::kActivationGrad) passes = {6, 6, 6};
  for (const int bytes : passes) kernels.pass(bytes);
}

}  // namespace

bool is_within_exchange(const CostQuery& query) {
  return is_permutation(query.kind) && query.shape.heads == kWithinExchange;
}

bool has_separate_kernels(const CostQuery& query) {
  const OpKind kind = query.kind;
  if (is_eager(query) || writes_columns(query) || sums_bias(query) || has_bias_apart(query)) return true;
  return query.shape.heads > 0 && (is_loss(kind) || is_norm(kind) || kind == OpKind::kAdam || is_gate(kind) ||
                                   is_permutation(kind) || is_grouped(kind) || kind == OpKind::kQuantise);
}

Cost separate_kernels_cost(const CostSource& source, const CostQuery& query) {
  if (is_within_exchange(query)) return {};
  SeparateKernels kernels(source, query);
  if (is_eager(query)) {
    add_eager(kernels, query.kind, query.shape.k);
  } else if (sums_bias(query)) {
    kernels.op_itself();
    kernels.pass_over(query.shape.m, query.shape.n * std::max<std::int64_t>(1, query.shape.k), 2);
  } else if (has_bias_apart(query)) {
    kernels.op_itself();
    const bool back = query.kind == OpKind::kGemmWgrad;  // sums over tokens, which are its k
    kernels.pass_over(back ? query.shape.k : query.shape.m, back ? query.shape.m : query.shape.n,
                      back ? 2 : 4);
  } else if (is_grouped(query.kind)) {
    add_products(kernels, query);
    if (query.shape.heads == kSeparateWithBias) add_bias(kernels, query);
    if (query.shape.heads == kTakesSlices || query.shape.heads == kWritesSlices) add_slices(kernels, query);
  } else if (is_permutation(query.kind)) {
    add_permutation(kernels, query);
  } else if (is_gate(query.kind)) {
    constexpr int kForward = 34, kBack = 13;
    kernels.op_itself();
    kernels.small(query.kind == OpKind::kGate ? kForward : kBack);
  } else if (is_loss(query.kind)) {
    add_loss(kernels, query);
  } else if (query.kind == OpKind::kQuantise) {
    const double copy = element_bytes(query.dtype);
    kernels.op_itself(1 + copy / (element_bytes(DType::kBf16) + copy));
  } else if (query.kind == OpKind::kNorm) {
    constexpr double kRowsReadAgain = 1.4;
    const bool separate =
        query.shape.heads % kWithColumns == kSeparateKernels && query.shape.k != kOfSharedRows;
    kernels.op_itself((separate ? kRowsReadAgain : 1) *
                      (writes_columns(query) ? bytes_with_columns(query) : 1));
  } else if (query.kind == OpKind::kActivation) {
    kernels.op_itself(bytes_with_columns(query));
  } else if (query.kind == OpKind::kRowMeans) {
    kernels.op_itself();
  } else if (query.kind == OpKind::kNormGrad) {
    kernels.op_itself();
    kernels.pass(query.shape.k == kOfSharedRows ? 4 : 6);
  } else {
    const bool scaled = query.shape.heads > kScaledApart;
    if (query.shape.heads - (scaled ? kScaledApart : 0) == kSeparateFromBf16) kernels.pass(6);
    kernels.pass(8);
    if (scaled) kernels.pass(8);
    kernels.op_itself();
    kernels.pass(4);
  }
  return kernels.sum();
}

}  // namespace moebius
