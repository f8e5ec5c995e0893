#include "workloads/cost/separate_kernels.h"

#include <algorithm>

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

  Cost sum() const { return sum_; }

 private:
  // The longest kernel speaks for where the figure is known from.
  void add(const CostQuery& kernel) {
    const Cost cost = source_.cost(kernel);
    if (cost.seconds >= longest_)
      sum_.origin = cost.origin, sum_.error = cost.error, sum_.watts = cost.watts, longest_ = cost.seconds;
    sum_.seconds += cost.seconds;
    sum_.memory_bytes += cost.memory_bytes;
  }

  const CostSource& source_;
  const CostQuery& query_;
  Cost sum_;
  double longest_ = 0;
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
