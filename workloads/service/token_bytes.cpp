#include "workloads/service/token_bytes.h"

#include <algorithm>

#include "workloads/job.h"

namespace moebius {

int ranks_of_heads(const Model& model, const ServingPlan& plan) {
  return model.attention == AttentionKind::kMla ? 1 : std::min(plan.tp, model.kv_heads);
}

// Ranks that cut prompts each keep their own tokens. Where there are fewer heads than ranks that decode, each
// has one; latents they take in together.
TokenBytes token_bytes(const Model& model, const ServingPlan& plan) {
  const bool latent = model.attention == AttentionKind::kMla;
  const int copies = latent ? 1 : std::max(1, plan.tp / model.kv_heads);
  const double elements = kv_elements_per_token(model), bytes = element_bytes(plan.kv);
  return {.once = elements * bytes,
          .of_rank = elements / ranks_of_heads(model, plan) / plan.cp * bytes,
          .of_decode = elements * copies * bytes};
}

TokenBytes token_bytes_of_drafter(const ServicePool& pool) {
  if (!pool.drafter) return {};
  return token_bytes(pool.drafter->scenario.model, pool.drafter->scenario.serving);
}

}  // namespace moebius
