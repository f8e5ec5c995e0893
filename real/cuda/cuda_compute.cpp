// Compute ops on a device: operands in the order of the table in models/op_kind.h, kernels from kernels.h.
#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/device_op.h"

namespace moebius::cuda {
namespace {

void gemm_forward(DeviceOp& c) {
  const Operand x = c.in(0), w = c.in(1), bias = c.op().num_inputs > 2 ? c.in(2) : Operand();
  CHECK(bias.data == nullptr || (bias.elements() == w.rows && !is_scaled(bias.storage)),
        fmt::format("a bias of {} for {} columns", bias.elements(), w.rows));
  multiply(c, {.a = x, .b = w, .c = c.out(0, x.rows, w.rows), .b_transposed = true, .bias = bias});
}

void gemm_dgrad(DeviceOp& c) {
  const Operand dy = c.in(0), w = c.in(1);
  multiply(c, {.a = dy, .b = w, .c = c.out(0, dy.rows, w.columns)});
}

void gemm_wgrad(DeviceOp& c) {
  const Operand dy = c.in(0), x = c.in(1);
  multiply(c, {.a = dy, .b = x, .c = c.edit(0), .a_transposed = true, .accumulate = true});
  if (c.op().num_outputs > 1) add_column_sums(c.stream(), dy, c.edit(1));
}

// Where an op stores its result a second time, quantised, one kernel writes both.
Operand quantised_copy(DeviceOp& c, const Operand& y) {
  CHECK(storage_of(c.output_tensor(1)) == Storage::kFp8Rows && c.op().num_outputs == 2,
        fmt::format("{}: {} outputs", to_string(c.op().kind), c.op().num_outputs));
  return c.out_stored(1, y.rows, y.columns, Storage::kFp8Rows);
}

// Heads are rows of their own where the weight is one head's.
Operand by_rows_of(const Operand& x, const Operand& weight) {
  if (x.columns == weight.columns) return x;
  CHECK(!is_scaled(x.storage), "heads in a format with scales");
  Operand rows = x;
  rows.rows = x.elements() / weight.columns;
  rows.columns = weight.columns;
  return rows;
}

// Of an op that is told the means of its rows.
Operand known_means(DeviceOp& c, int input) {
  return c.shape().k == kOfSharedRows ? c.in(input) : Operand();
}

void norm(DeviceOp& c) {
  const Operand x = c.in(0), w = c.in(1), y = c.out(0, x.rows, x.columns);
  const Operand gate = c.shape().k == 1 ? by_rows_of(c.in(2), w) : Operand();
  const Norm what{by_rows_of(x, w),  w, c.options().constants.norm_epsilon, gate, known_means(c, 2),
                  c.shape().kv_heads};
  if (c.op().num_outputs == 1) return rms_norm(c.stream(), what, by_rows_of(y, w));
  CHECK(x.columns == w.columns, "norms of heads are not quantised");
  rms_norm_quantised(c.stream(), what, y, quantised_copy(c, y));
}

void norm_grad(DeviceOp& c) {
  const Operand dy = c.in(0), x = c.in(1), w = c.in(2);
  const Operand rows = by_rows_of(x, w);
  rms_norm_grad(c.stream(), {.dy = by_rows_of(dy, w),
                             .x = rows,
                             .weight = w,
                             .dx = by_rows_of(c.out(0, x), w),
                             .dweight = c.edit(1),
                             .inverse_rms = c.scratch(rows.rows, 1),
                             .parts = c.scratch(w.columns, norm_grad_parts(rows.rows)),
                             .epsilon = c.options().constants.norm_epsilon,
                             .means = known_means(c, 3),
                             .projections = known_means(c, 4),
                             .column = c.shape().kv_heads});
}

void row_means_of(DeviceOp& c) {
  const int step = c.shape().k == 1 ? 3 : 1;
  RowMeans what{.count = c.op().num_inputs / step, .scale = c.op().scale};
  CHECK(what.count <= std::ssize(what.of), fmt::format("means of {} tensors", what.count));
  for (int i = 0; i < what.count; ++i) {
    what.of[i] =
        step == 1 ? RowMeans::Of{c.in(i)} : RowMeans::Of{c.in(3 * i + 1), c.in(3 * i), c.in(3 * i + 2)};
  }
  row_means(c.stream(), what, c.out(0, what.of[0].x.rows, what.count));
}

bool gated(const DeviceOp& c) {
  return c.shape().k == 2;
}

void activate(DeviceOp& c) {
  if (c.shape().k == 3 || c.shape().k == kGateOfRows) {
    const Operand x = c.in(0);
    return gate_by_sigmoid(c.stream(), x, c.in(1), c.out(0, x));
  }
  const Activation what{c.in(0), c.op().num_inputs > 1 ? c.in(1) : Operand(), gated(c)};
  const Operand y = c.out(0, what.x.rows, c.shape().n);
  if (c.op().num_outputs == 1) return activation(c.stream(), what, y);
  activation_quantised(c.stream(), what, y, quantised_copy(c, y));
}

void gate_rows_back(DeviceOp& c) {
  const Operand dy = c.in(0), x = c.in(1), z = c.in(2);
  row_gate_grad(c.stream(), {dy, x, z, c.out(0, x), c.out(1, z)});
}

void activate_back(DeviceOp& c) {
  if (c.shape().k == kGateOfRows) return gate_rows_back(c);
  const Operand dy = c.in(0);
  const Activation what{c.in(1), c.op().num_inputs > 2 ? c.in(2) : Operand(), gated(c)};
  const Operand dx = c.out(0, what.x);
  const Operand drow_weight = c.op().num_outputs > 1 ? c.out(1, what.x.rows, 1) : Operand();
  activation_grad(c.stream(), what, dy, dx, drow_weight);
}

void add_two(DeviceOp& c) {
  const Operand a = c.in(0), b = c.in(1);
  CHECK(a.rows == b.rows && a.columns == b.columns,
        fmt::format("{} x {} + {} x {}", a.rows, a.columns, b.rows, b.columns));
  add(c.stream(), a, b, c.out(0, a));
}

void split(DeviceOp& c) {
  const Operand x = c.in(0);
  std::int64_t first = 0;
  for (int i = 0; i < c.op().num_outputs; ++i) {
    const std::int64_t width = c.output_tensor(i).columns;
    copy_columns(c.stream(), {.x_first = first, .y_first = 0, .width = width}, x, c.out(i, x.rows, width));
    first += width;
  }
  CHECK(first == x.columns, fmt::format("{} of {} columns", first, x.columns));
}

void concat(DeviceOp& c) {
  const Operand y = c.out(0, c.in(0).rows, c.output_tensor(0).columns);
  std::int64_t first = 0;
  for (int i = 0; i < c.op().num_inputs; ++i) {
    const Operand part = c.in(i);
    copy_columns(c.stream(), {.x_first = 0, .y_first = first, .width = part.columns}, part, y);
    first += part.columns;
  }
  CHECK(first == y.columns, fmt::format("{} of {} columns", first, y.columns));
}

// Both ways at once is of scales that cuda does not store.
void quantise_rows(DeviceOp& c) {
  CHECK(c.op().num_outputs == 1, std::string("one copy, with scales along rows"));
  const Operand x = c.plain_in(0);
  const bool weight = storage_of(c.output_tensor(0)) == Storage::kFp8Blocks;
  if (weight) return convert(c.stream(), x, c.out(0, x.rows, x.columns));  // quantised as it is stored
  const Storage storage = storage_of(c.output_tensor(0).dtype);
  const Operand y = c.out_stored(0, x.rows, x.columns, storage);
  is_scaled(storage) ? quantise(c.stream(), x, y) : convert(c.stream(), x, y);
}

void quantise_columns(DeviceOp& c) {
  const Operand x = c.plain_in(0);
  const Storage storage = storage_of(c.output_tensor(0).dtype);
  const Operand y = c.out_stored(0, x.rows, x.columns, is_scaled(storage) ? Storage::kFp8Columns : storage);
  is_scaled(storage) ? quantise(c.stream(), x, y) : convert(c.stream(), x, y);
}

void largest(DeviceOp& c) {
  const Operand x = c.plain_in(0), parts = c.scratch(parts_of(x.elements()), 1);
  largest_magnitude(c.stream(), x, parts, c.out(0, 1, 1));
}

}  // namespace

void compute(DeviceOp& c) {
  switch (c.op().kind) {
    case OpKind::kGemm:
      return gemm_forward(c);
    case OpKind::kGemmDgrad:
      return gemm_dgrad(c);
    case OpKind::kGemmWgrad:
      return gemm_wgrad(c);
    case OpKind::kNorm:
      return norm(c);
    case OpKind::kNormGrad:
      return norm_grad(c);
    case OpKind::kRowMeans:
      return row_means_of(c);
    case OpKind::kActivation:
      return activate(c);
    case OpKind::kActivationGrad:
      return activate_back(c);
    case OpKind::kAdd:
      return add_two(c);
    case OpKind::kSplit:
      return split(c);
    case OpKind::kConcat:
      return concat(c);
    case OpKind::kLargest:
      return largest(c);
    case OpKind::kQuantise:
      return quantise_rows(c);
    case OpKind::kTransposeQuantise:
      return quantise_columns(c);
    case OpKind::kAdam:
      return compute_adam(c);
    case OpKind::kSumSquares:
      return compute_sum_squares(c);
    case OpKind::kRotary:
    case OpKind::kRotaryGrad:
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
    case OpKind::kMlaKeys:
    case OpKind::kMlaKeysGrad:
      return compute_attention(c);
    case OpKind::kGroupedGemm:
    case OpKind::kGroupedGemmDgrad:
    case OpKind::kGroupedGemmWgrad:
    case OpKind::kGate:
    case OpKind::kGateGrad:
    case OpKind::kPermute:
    case OpKind::kPermuteGrad:
    case OpKind::kUnpermute:
    case OpKind::kUnpermuteGrad:
      return compute_routed(c);
    case OpKind::kInput:
    case OpKind::kEmbedding:
    case OpKind::kEmbeddingGrad:
    case OpKind::kCrossEntropyStats:
    case OpKind::kCrossEntropy:
      return compute_tokens(c);
    case OpKind::kCacheAppend:
    case OpKind::kPagedAttention:
    case OpKind::kIndexScores:
    case OpKind::kTopKeys:
    case OpKind::kAbsorbQueries:
    case OpKind::kAbsorbedValues:
    case OpKind::kConvolution:
    case OpKind::kDeltaRule:
    case OpKind::kLastRows:
    case OpKind::kGreedySample:
    case OpKind::kNextToken:
    case OpKind::kPlaceExperts:
      return compute_batch(c);
    case OpKind::kDispatch:
    case OpKind::kCombine:
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kAllGather:
    case OpKind::kBroadcast:
    case OpKind::kAllToAll:
    case OpKind::kSend:
    case OpKind::kRecv:
    case OpKind::kCopyToHost:
    case OpKind::kCopyFromHost:
      break;
  }
  CHECK(false, fmt::format("{} does not compute", to_string(c.op().kind)));
}

}  // namespace moebius::cuda
