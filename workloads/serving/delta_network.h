// A gated delta network over the tokens of a batch (Yang et al., arXiv 2412.06464; Qwen3-Next has them in
// three of four layers): maps to queries, keys, values and their gate, a short convolution over the first
// three, the gated delta rule, a norm of each value head times silu of its gate. What a sequence brings from
// its earlier tokens stands in its row of two tensors (cache_tensor.h), whatever its length.
#pragma once

#include "workloads/serving/attention.h"

namespace moebius {

// normed rows of the batch -> [rows, value columns on this rank], before the output projection.
TensorId write_delta_network(LayerWriter& writer, const CachedBatch& batch, TensorId normed);

}  // namespace moebius
