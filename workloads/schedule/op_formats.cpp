#include "workloads/schedule/op_formats.h"

#include <cmath>

#include "models/layer_math.h"

namespace moebius {
namespace {

// Of 128 elements that an update writes, those of weights that it rounds to 8 bits.
std::int32_t share_in_8_bits(const Fragment& fragment, const Op& op) {
  const int operands = op.shape.k == 0 ? 5 : 4;  // of a parameter: gradient, weight, master, moments
  double all = 0, rounded = 0;
  for (int i = 1; i < op.num_inputs; i += operands) {
    const Tensor& weight = fragment.tensors[fragment.input(op, i)];
    const auto elements = static_cast<double>(weight.elements());
    all += elements;
    if (weight.dtype == DType::kFp8) rounded += elements;
  }
  return all > 0 ? static_cast<std::int32_t>(std::lround(kShareOfUpdate * rounded / all)) : 0;
}

}  // namespace

// Weights of fewer bits than the arithmetic's are read as they are kept; masters that are not FP32 too.
std::optional<DType> kept_format(const Fragment& fragment, const Op& op) {
  if (op.num_inputs < 2) return std::nullopt;  // of an op that stands alone nothing more is known
  if (op.kind == OpKind::kPagedAttention || op.kind == OpKind::kIndexScores)
    return fragment.tensors[fragment.input(op, 1)].dtype;
  if (op.kind == OpKind::kAdam && op.shape.k == 0 && op.num_inputs > 2) {
    const DType master = fragment.tensors[fragment.input(op, 2)].dtype;
    return master == DType::kFp32 ? std::nullopt : std::optional(master);
  }
  if (op.kind != OpKind::kGemm && op.kind != OpKind::kGroupedGemm) return std::nullopt;
  const Tensor& weight = fragment.tensors[fragment.input(op, 1)];
  if (weight.memory != MemoryKind::kWeights || weight.dtype == op.dtype || element_bytes(weight.dtype) >= 2)
    return std::nullopt;
  return weight.dtype;
}

DType summed_format(const Fragment& fragment, const Op& op) {
  if (op.kind == OpKind::kAdam && op.num_inputs > 0 && op.shape.heads == 0)
    return fragment.tensors[fragment.input(op, 0)].dtype;
  if (op.kind != OpKind::kGemmWgrad && op.kind != OpKind::kGroupedGemmWgrad) return DType::kFp32;
  if (op.num_outputs < 1) return DType::kFp32;  // of an op that stands alone nothing more is known
  return fragment.tensors[fragment.output(op, 0)].dtype;
}

bool promotes_sums(const Fragment& fragment, const Op& op) {
  const bool back = op.kind == OpKind::kGemmDgrad || op.kind == OpKind::kGemmWgrad ||
                    op.kind == OpKind::kGroupedGemmDgrad || op.kind == OpKind::kGroupedGemmWgrad;
  if (!back || op.dtype != DType::kFp8 || op.num_inputs < 1) return false;
  return has_one_scale(fragment.tensors[fragment.input(op, 0)].scaling);
}

Shape shape_by_formats(const Fragment& fragment, const Op& op) {
  Shape shape = op.shape;
  if (op.kind == OpKind::kAdam) shape.v_dim = share_in_8_bits(fragment, op);
  return shape;
}

Bytes op_bytes(const Op& op, const Fragment& fragment) {
  return op_bytes(op.kind, shape_by_formats(fragment, op), op.dtype, kept_format(fragment, op),
                  summed_format(fragment, op));
}

}  // namespace moebius
