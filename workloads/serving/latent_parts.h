// How the sequences of an iteration attend over cached latents. A prompt's tokens see keys and values blown
// up to heads, which are made for all that the sequence has in the cache; a few tokens absorb the maps
// instead and read latents alone. Fewer products decide: a row pays 2 kv_rank + rope columns a head and key
// when absorbed, head_dim + v_dim otherwise, and blowing up pays kv_rank x (nope + v_dim) a head and key
// once. Engines decide for all prompts of an iteration at once (LatentRule).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "models/model.h"
#include "workloads/schedule/batch.h"

namespace moebius {

// Of a batch whose sequences do not all attend alike; those that blow up stand first.
struct LatentParts {
  BatchPtr blown_up, absorbed;  // null: there are none
  std::int64_t keys = 0;        // of those that blow up, past and new
  bool none = false;            // all absorb, prompts that stand whole among them
  bool given() const { return blown_up != nullptr; }
};

// What prompts of one iteration of a replica do. SGLang (models/deepseek_common/attention_backend_handler.py,
// _handle_attention_backend: fa3, flashinfer, flashmla, cutlass_mla) absorbs all of them where they have 1 ..
// below - 1 cached tokens before them, all together, and blows up all of them where they have none or more.
// vLLM (model_executor/layers/attention/mla_attention.py) and TensorRT-LLM (_torch/modules/attention.py) blow
// up all: 1. Sequences that decode absorb in any case; SGLang, where it mixes them with prompts (not by
// default), treats them as these.
struct LatentRule {
  std::int64_t below = 0;             // 0: each sequence does what takes fewer products
  int drafts = 0;                     // rows that a decoding sequence has beside its own
  std::optional<bool> absorbed = {};  // said of the iteration, whatever its sequences are; not with 0
};

// Tokens before the prompts, all together, with which a rule absorbs.
inline bool absorbs(std::int64_t below, std::int64_t cached) {
  return cached > 0 && cached < below;
}

// Of a prompt's `computed` tokens behind `cached` ones, in parts of `budget`: those of parts that absorb.
inline std::int64_t absorbed_tokens(std::int64_t below, std::int64_t cached, std::int64_t computed,
                                    std::int64_t budget) {
  if (cached >= below) return 0;
  const std::int64_t parts = (below - cached - 1) / budget + 1;  // that begin behind fewer
  const std::int64_t first = cached > 0 ? 0 : std::min(budget, computed);
  return std::max<std::int64_t>(0, std::min(computed, parts * budget) - first);
}

// Whether queries attend to all latents that are cached: of others it is not asked how.
inline bool attends_over_latents(const Model& model) {
  return model.attention == AttentionKind::kMla && !model.is_sparse();
}

// So that few tokens never stand before many: they would be blown up with them.
void put_blown_up_first(const Model& model, Batch& batch, const LatentRule& rule = {});

// None where prompts stand whole or every sequence has few tokens: the whole batch then attends one way. So
// it does where each query chooses its keys.
LatentParts latent_parts(const Model& model, const Batch& batch, const LatentRule& rule = {});

// Tokens of a sequence from which on blowing its latents up takes fewer products.
std::int64_t fewest_blown_up(const Mla& mla);

}  // namespace moebius
