// What keys and values of a token take in the caches of a pool, by who has them.
#pragma once

#include "models/model.h"
#include "workloads/service/pools.h"
#include "workloads/serving/plan.h"

namespace moebius {

struct TokenBytes {
  double once = 0;       // of all layers, each head and latent once: as a tier keeps them
  double of_rank = 0;    // on a rank of a replica that computes it
  double of_decode = 0;  // that all ranks of a replica take in to decode it
};
TokenBytes token_bytes(const Model& model, const ServingPlan& plan);
// Of what makes guesses beside the model of the pool; nothing where nothing does.
TokenBytes token_bytes_of_drafter(const ServicePool& pool);

// Ranks of a replica over which heads with keys and values are cut. Latents are the same on each.
int ranks_of_heads(const Model& model, const ServingPlan& plan);

}  // namespace moebius
