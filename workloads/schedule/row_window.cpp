#include "workloads/schedule/row_window.h"

#include <algorithm>

namespace moebius {
namespace {

bool has_windows(const Op& op) {
  const bool of_such_a_kind = op.kind == OpKind::kGemm || op.kind == OpKind::kGemmDgrad ||
                              op.kind == OpKind::kQuantise || op.kind == OpKind::kAllGather ||
                              op.kind == OpKind::kReduceScatter || op.kind == OpKind::kAdd;
  return of_such_a_kind && op.shape.groups > 0;
}

std::optional<RowWindow> absorbed_window(const Fragment& fragment, const Op& op, int operand) {
  const bool queries = op.kind == OpKind::kAbsorbQueries;
  if (op.shape.groups == 0 || operand != (queries ? 0 : op.num_inputs)) return std::nullopt;
  const std::int32_t tensor = queries ? fragment.input(op, 0) : fragment.output(op, 0);
  return RowWindow{1, fragment.tensors[tensor].rows, op.shape.kv, op.shape.m};
}

}  // namespace

std::optional<RowWindow> row_window(const Fragment& fragment, const Op& op, int operand) {
  if (op.kind == OpKind::kSend && op.shape.k > 0)
    return RowWindow{1, fragment.tensors[fragment.input(op, 0)].rows, op.shape.kv, op.shape.m};
  if (op.kind == OpKind::kAbsorbQueries || op.kind == OpKind::kAbsorbedValues)
    return absorbed_window(fragment, op, operand);
  const bool is_second_of_sum = op.kind == OpKind::kAdd && operand == 1;
  if (!has_windows(op) || (operand != 0 && operand != op.num_inputs && !is_second_of_sum))
    return std::nullopt;
  const std::int64_t in = fragment.tensors[fragment.input(op, 0)].rows;
  const std::int64_t out = fragment.tensors[fragment.output(op, 0)].rows;
  const std::int64_t block_rows = std::max(in, out) / op.shape.groups;
  const std::int64_t rows = op.kind == OpKind::kAllGather ? op.shape.m : op.shape.m / op.shape.groups;
  return RowWindow{.blocks = (operand == op.num_inputs ? out : in) / block_rows,
                   .block_rows = block_rows,
                   .first = op.shape.kv,
                   .rows = rows};
}

}  // namespace moebius
