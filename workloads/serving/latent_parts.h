// How the sequences of an iteration attend over cached latents. A prompt's tokens see keys and values blown
// up to heads, which are made for all that the sequence has in the cache; a few tokens absorb the maps
// instead and read latents alone. Fewer products decide: a row pays 2 kv_rank + rope columns a head and key
// when absorbed, head_dim + v_dim otherwise, and blowing up pays kv_rank x (nope + v_dim) a head and key
// once.
#pragma once

#include <cstdint>

#include "models/model.h"
#include "workloads/schedule/batch.h"

namespace moebius {

// Of a batch whose sequences do not all attend alike; those that blow up stand first.
struct LatentParts {
  BatchPtr blown_up, absorbed;  // null: there are none
  std::int64_t keys = 0;        // of those that blow up, past and new
  bool given() const { return blown_up != nullptr; }
};

// So that few tokens never stand before many: they would be blown up with them.
void put_blown_up_first(const Model& model, Batch& batch);

// None where prompts stand whole or every sequence has few tokens: the whole batch then attends one way. So
// it does where each query chooses its keys.
LatentParts latent_parts(const Model& model, const Batch& batch);

// Tokens of a sequence from which on blowing its latents up takes fewer products.
std::int64_t fewest_blown_up(const Mla& mla);

}  // namespace moebius
