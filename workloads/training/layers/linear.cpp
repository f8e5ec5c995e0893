// Products of a layer with its dense matrices, and what low-rank adapters beside a matrix add.
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/training/layers/layer_writer.h"

namespace moebius {

TensorId LayerWriter::weight(const Linear& linear, std::int64_t rows, std::int64_t columns) {
  const int member = linear.dense_mlp && plan().mixed_tp() ? shard_.dense : shard_.tensor;
  return add_weight({.scope = Scope::kRank,
                     .memory = MemoryKind::kWeights,
                     .dtype = linear.high_precision ? DType::kBf16 : dense_.stored,
                     .role = linear.role,
                     .layer = builder().layer,
                     .key = parameter_key(linear.role, builder().layer, Part::kWeight),
                     .rows = rows,
                     .columns = columns,
                     .first_row = linear.cut == Cut::kColumns ? member * rows : 0,
                     .first_column = linear.cut == Cut::kRows ? member * columns : 0,
                     .tensor_copies = linear.cut == Cut::kNone ? plan().tp : 1,
                     .init = 1 / std::sqrt(static_cast<double>(linear.in))});
}

// Training starts biases at zero; as small numbers they show where ranks would add others. Behind the
// matrix's columns, for numbers of their own.
TensorId LayerWriter::bias(TensorId weight) {
  constexpr double kInit = 0.02;
  Tensor bias = builder().tensor(weight);
  bias.dtype = DType::kBf16;
  bias.key = bias_key(bias.role, bias.layer, Part::kWeight);
  bias.first_column = bias.columns;
  bias.columns = 1;
  bias.init = kInit;
  return builder().add(bias);
}

TensorId LayerWriter::product(TensorId x, const Linear& spec) {
  const std::int64_t out = spec.cut == Cut::kColumns ? spec.out / degree_of(spec) : spec.out;
  const std::int64_t in = spec.cut == Cut::kRows ? spec.in / degree_of(spec) : spec.in;
  const DType dtype = spec.high_precision ? DType::kBf16 : dense_.arithmetic;
  // A copy along the tokens is what a weight gradient reads.
  const TensorId operand = quantised(x, dtype, !adapters().any());
  CHECK(columns(operand) == in,
        fmt::format("{}: {} columns, weight takes {}", to_string(spec.role), columns(operand), in));
  CHECK(!spec.bias || spec.cut != Cut::kRows, std::string("each rank would add a bias to its part of a sum"));
  const TensorId w = weight(spec, out, in);
  const TensorId y = builder().transient(rows(x), out, DType::kBf16, spec.role);
  Op op{.kind = OpKind::kGemm, .dtype = dtype, .role = spec.role, .shape = {.m = rows(x), .n = out, .k = in}};
  std::vector<TensorId> inputs{operand, w};
  if (spec.bias) {
    op.shape.heads = plan().biases == BiasKernels::kApart ? kWithBiasApart : kWithBias;
    inputs.push_back(bias(w));
  }
  emit(op, inputs, {y});
  return y;
}

TensorId LayerWriter::linear(TensorId x, const Linear& spec) {
  const TensorId y = product(x, spec);
  if (!adapters().beside(spec.role)) return y;
  const TensorId low = adapter_product(x, adapter(spec, AdapterSide::kA), spec);
  if (spec.cut != Cut::kRows || degree_of(spec) == 1) return add_adapter(y, low, spec);
  cut_adapters_.push_back({low, spec});
  return y;
}

// A matrix of the adapter is cut where W is cut on its side; the other one stands whole on every rank. Of a
// product cut by columns A gets from each rank what its outputs say: the sum over the ranks is the gradient.
// A starts as W does, with numbers of its own (those below W's), B at zero.
TensorId LayerWriter::adapter(const Linear& spec, AdapterSide side) {
  const bool a = side == AdapterSide::kA, cut = spec.cut == (a ? Cut::kRows : Cut::kColumns);
  const int member = shard_.tensor, degree = cut ? degree_of(spec) : 1;
  Tensor tensor{.scope = Scope::kRank,
                .memory = MemoryKind::kWeights,
                .role = spec.role,
                .layer = builder().layer,
                .key = adapter_key(spec.role, builder().layer, side, Part::kWeight),
                .rows = a ? adapters().rank : spec.out / degree,
                .columns = a ? spec.in / degree : adapters().rank,
                .tensor_copies = cut ? 1 : plan().tp,
                .init = a ? 1 / std::sqrt(static_cast<double>(spec.in)) : 0};
  tensor.first_row = a ? spec.out : cut ? member * tensor.rows : 0;
  tensor.first_column = a && cut ? member * tensor.columns : 0;
  const TensorId weight = builder().add(tensor);
  if (a && spec.cut == Cut::kColumns && plan().tp > 1) pass_.partial_weights.insert(weight);
  return weight;
}

// In 16 bits where the other products are in 8.
TensorId LayerWriter::adapter_product(TensorId x, TensorId weight, const Linear& spec) {
  const std::int64_t n = rows(weight), k = columns(weight);
  CHECK(columns(x) == k,
        fmt::format("{}: {} columns, adapter takes {}", to_string(spec.role), columns(x), k));
  const TensorId y = builder().transient(rows(x), n, DType::kBf16, spec.role);
  const DType dtype = element_bytes(dense_.arithmetic) < 2 ? DType::kBf16 : dense_.arithmetic;
  emit({.kind = OpKind::kGemm, .dtype = dtype, .role = spec.role, .shape = {.m = rows(x), .n = n, .k = k}},
       {x, weight}, {y});
  return y;
}

TensorId LayerWriter::add_adapter(TensorId y, TensorId low, const Linear& spec) {
  const TensorId delta = adapter_product(low, adapter(spec, AdapterSide::kB), spec);
  const TensorId sum = builder().transient(rows(y), columns(y), DType::kBf16, spec.role);
  emit({.kind = OpKind::kAdd, .role = spec.role, .shape = {.m = rows(y), .n = columns(y)}}, {y, delta},
       {sum});
  return sum;
}

// The ranks' parts of x A' are summed as those of the product are, in as few columns as the rank has.
TensorId LayerWriter::leave_with_adapters(TensorId sum) {
  for (const CutAdapter& cut : std::exchange(cut_adapters_, {}))
    sum = add_adapter(sum, leave_tensor_parallel(cut.low), cut.linear);
  return sum;
}

TensorId LayerWriter::expert_adapter(const Linear& linear, AdapterSide side, int experts) {
  const bool a = side == AdapterSide::kA;
  return builder().add({.scope = Scope::kRank,
                        .memory = MemoryKind::kWeights,
                        .role = linear.role,
                        .layer = builder().layer,
                        .key = adapter_key(linear.role, builder().layer, side, Part::kWeight),
                        .rows = a ? adapters().rank : linear.out,
                        .columns = a ? linear.in : adapters().rank,
                        .first_expert = shard_.expert * experts,
                        .experts = experts,
                        .first_row = a ? linear.out : 0,
                        .init = a ? 1 / std::sqrt(static_cast<double>(linear.in)) : 0});
}

TensorId LayerWriter::with_expert_adapter(TensorId y, TensorId x, const Linear& linear, const Op& product) {
  if (!adapters().beside(linear.role)) return y;
  const auto times = [&](TensorId rows_in, AdapterSide side) {
    const TensorId w = expert_adapter(linear, side, product.shape.groups);
    Op op = product;
    op.dtype = element_bytes(product.dtype) < 2 ? DType::kBf16 : product.dtype;
    op.shape.n = rows(w);
    op.shape.k = columns(w);
    const TensorId result = builder().transient(rows(y), rows(w), DType::kBf16, linear.role);
    emit(op, {rows_in, w}, {result});
    return result;
  };
  const TensorId delta = times(times(x, AdapterSide::kA), AdapterSide::kB);
  const TensorId sum = builder().transient(rows(y), columns(y), DType::kBf16, linear.role);
  emit({.kind = OpKind::kAdd,
        .role = linear.role,
        .route = product.route,
        .shape = {.m = rows(y), .n = columns(y)}},
       {y, delta}, {sum});
  return sum;
}

}  // namespace moebius
