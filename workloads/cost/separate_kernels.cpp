#include "workloads/cost/separate_kernels.h"

#include <algorithm>

#include "workloads/cost/kernel_sum.h"

namespace moebius {
namespace {

bool is_loss(OpKind kind) {
  return kind == OpKind::kCrossEntropyStats || kind == OpKind::kCrossEntropy;
}

class Kernels {
 public:
  Kernels(const CostSource& source, const CostQuery& query) : source_(source), query_(query) {}

  // Moves so many bytes of each element: kSplit reads and writes two of each of its own.
  void pass(std::int64_t bytes) {
    const Shape& s = query_.shape;
    constexpr std::int64_t kOfSplit = 4;
    add({.kind = OpKind::kSplit,
         .shape = {.m = std::max<std::int64_t>(1, s.m * bytes / kOfSplit), .n = s.n},
         .dtype = DType::kBf16,
         .cores = query_.cores});
  }

  void op_itself() {
    CostQuery op = query_;
    op.shape.heads = 0;
    add(op);
  }

  Cost sum() const { return sum_.sum(); }

 private:
  void add(const CostQuery& kernel) { sum_.add(source_.cost(kernel)); }

  const CostSource& source_;
  const CostQuery& query_;
  KernelSum sum_;
};

}  // namespace

bool has_separate_kernels(const CostQuery& query) {
  const OpKind kind = query.kind;
  return query.shape.heads > 0 && (is_loss(kind) || kind == OpKind::kNormGrad || kind == OpKind::kAdam);
}

Cost separate_kernels_cost(const CostSource& source, const CostQuery& query) {
  Kernels kernels(source, query);
  if (query.kind == OpKind::kCrossEntropyStats) {
    for (const int bytes : {6, 4, 8, 8, 4}) kernels.pass(bytes);
  } else if (query.kind == OpKind::kCrossEntropy) {
    for (const int bytes : {8, 8, 6}) kernels.pass(bytes);
  } else if (query.kind == OpKind::kNormGrad) {
    kernels.op_itself();
    kernels.pass(4);
  } else {
    if (query.shape.heads == kSeparateFromBf16) kernels.pass(6);
    for (const int bytes : {8, 4, 8}) kernels.pass(bytes);
    kernels.op_itself();
    kernels.pass(4);
  }
  return kernels.sum();
}

}  // namespace moebius
