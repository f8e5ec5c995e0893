// In which formats an op finds what is kept - weights, gradients, masters, a cache: its tensors say so, not
// the op.
#pragma once

#include <optional>

#include "workloads/schedule/fragment.h"

namespace moebius {

// Of the operand that is kept, as op_bytes() asks for it: weights of products, the cache of attention, the
// masters of an update. Empty: the one that op_bytes() takes by itself.
std::optional<DType> kept_format(const Fragment& fragment, const Op& op);

// What the gradients are kept in that the op adds to, or updates by; kernels before a separate update copy
// them to FP32.
DType summed_format(const Fragment& fragment, const Op& op);

// FP8 products whose sums are promoted to FP32 on the way, where the tensor unit keeps fewer bits: those of
// gradients, of tensors with one scale (Transformer Engine, common/recipe: fast accumulation forward alone;
// torchao, float8/config.py; XLA: precision HIGHEST). Scales of blocks are applied there in any case.
bool promotes_sums(const Fragment& fragment, const Op& op);

// The op's shape, with what it does not say but the tensors that the op works on.
Shape shape_by_formats(const Fragment& fragment, const Op& op);

// Of an op by its shape, in these formats.
Bytes op_bytes(const Op& op, const Fragment& fragment);

}  // namespace moebius
