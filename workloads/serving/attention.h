// Attention of one layer over the tokens of a batch: new keys and values go into the paged cache; prompts
// attend to themselves as they are (FlashAttention over sequences of different lengths), decoding tokens to
// the cache. Latent attention caches the latent and the rotary key of a token; prompts blow their latents up
// to heads, decoding absorbs the maps into queries and results (DeepSeek-V2, section 2.1.2). Prompts behind
// tokens that the cache holds read those latents back and blow them up beside their own (latent_parts.h), and
// so do ranks that have cut a prompt, which gather what each of them keeps (cut_prompts.h).
#pragma once

#include "workloads/schedule/batch.h"
#include "workloads/serving/latent_parts.h"
#include "workloads/training/layers/layer_writer.h"

namespace moebius {

struct CachedBatch {
  BatchPtr batch;
  std::int32_t index = -1;      // in the fragment
  std::int64_t cache_rows = 0;  // of the cache of a layer
  DType kv = DType::kBf16;
  DType arithmetic = DType::kBf16;  // of prompts, as ServingPlan::attention
  LatentParts parts = {};
  BatchPtr local = {};      // what layers see of it that attend in chunks (local_batch())
  BatchPtr whole = {};      // as Iteration's
  std::int64_t states = 1;  // rows of what delta networks keep
};

// x -> x + attention(norm(x)).
TensorId write_batch_attention(LayerWriter& writer, const CachedBatch& batch, TensorId x);

// x -> x + attention(norm(x)) + mlp(norm(x)), of a model whose layers are such (ParallelBlock).
TensorId write_parallel_block_of_batch(LayerWriter& writer, const CachedBatch& batch, TensorId x);

}  // namespace moebius
