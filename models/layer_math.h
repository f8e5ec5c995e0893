// FLOPs and bytes of one op, as pure functions of its kind and shape. A multiply-add counts as two FLOPs.
#pragma once

#include "hw/dtype.h"
#include "hw/units.h"
#include "models/op_kind.h"

namespace moebius {

// Arithmetic of the op. Causal attention counts only the keys that a query sees: for s queries at the end of kv keys
// that is s*kv - s*(s-1)/2 pairs a head. Memory-bound kinds count one to ten operations an element; exact values are
// in the .cpp beside the formula. Communication counts zero.
Flops op_flops(OpKind kind, const Shape& shape);

// Bytes that must cross device memory when nothing is cached: each input read once, each output written once, in
// `dtype` (element_bytes) for operands of that precision; accumulated outputs are read and written in FP32.
// Experts' weights count for groups that have rows.
Bytes op_bytes(OpKind kind, const Shape& shape, DType dtype);

}  // namespace moebius
