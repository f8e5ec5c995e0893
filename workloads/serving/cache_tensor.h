// What a rank keeps of the tokens of its sequences, layer by layer.
#pragma once

#include "models/model.h"
#include "workloads/training/layers/builder.h"

namespace moebius {

struct CacheShape {
  int tp = 1;
  DType kv = DType::kBf16;
  std::int64_t rows = 0;  // tokens that there is room for
};

// [rows, columns]: a row for each token, keys of all heads on this rank, then their values; with latent
// attention the latent and the rotary key, and behind them the key of an indexer.
std::int64_t cache_columns(const Model& model, int tp);
Tensor cache_tensor(const Model& model, const CacheShape& shape, int layer);

// What delta networks keep of sequences, a row for each (BatchSequence::state): the matrices of the heads on
// this rank, [key_dim, value_dim] each, in FP32; and the rows that went into the convolution, oldest first.
Tensor state_tensor(const Model& model, int tp, std::int64_t sequences, int layer);
Tensor convolved_tensor(const Model& model, int tp, std::int64_t sequences, int layer);

// The same of preempted sequences, in the host's memory.
Tensor host_cache_tensor(const Model& model, const CacheShape& shape, int layer);

}  // namespace moebius
