// The reverse rules of one-hot masks and of products with them: see one_hot.cpp.
#include "workloads/training/layers/reverse.h"

namespace moebius {

// y = mask x rows: the rows' gradient is a product with the same mask, that of a mask of weights one of both
// other matrices, which stands beside the exchange that the first one begins.
void Reverse::reverse_masked(const Op& op) {
  const TensorId dy = gradient(out(op, 0)), mask = in(op, 0), rows = in(op, 1);
  const std::int64_t tokens = fragment().tensors[mask].rows, places = fragment().tensors[mask].columns;
  Op back = like(op, OpKind::kGemmDgrad);
  if (needs_gradient(rows)) {
    const std::int64_t results = fragment().tensors[rows].rows;
    back.shape = {.m = results, .n = op.shape.n, .k = tokens * places / results};
    const TensorId of_rows = fresh_gradient(rows);
    emit(back, {value(mask), dy}, {of_rows});
    add_gradient(rows, of_rows);
  }
  if (fragment().tensors[mask].dtype == DType::kInt8 || !needs_gradient(mask)) return;
  back.shape = {.m = tokens, .n = places, .k = op.shape.n};
  const TensorId of_mask = fresh_gradient(mask);
  emit(back, {dy, value(rows)}, {of_mask});
  add_gradient(mask, of_mask);
}

// A pass reads the gradient of the weights' mask; what it writes is next to nothing.
void Reverse::reverse_masks(const Op& op) {
  const TensorId of_mask = gradient(out(op, 1));
  if (of_mask == kNoTensor) return;
  const TensorId weights = fresh_gradient(in(op, 0));
  Op back = like(op, OpKind::kConcat);
  back.shape.m = (op.shape.m + 1) / 2;  // a concatenation of so many rows would write as many
  emit(back, {of_mask}, {weights});
  add_gradient(in(op, 0), weights);
}

}  // namespace moebius
