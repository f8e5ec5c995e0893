#include "workloads/serving/latent_parts.h"

#include <algorithm>
#include <memory>

#include "hw/error.h"

namespace moebius {

std::int64_t fewest_blown_up(const Mla& mla) {
  const std::int64_t saved = 2 * mla.kv_rank + mla.rope_dim - (mla.nope_dim + mla.rope_dim) - mla.v_dim;
  if (saved <= 0) return 2;  // heads are wider than latents: only decoding absorbs
  return std::max<std::int64_t>(2, std::int64_t{mla.kv_rank} * (mla.nope_dim + mla.v_dim) / saved + 1);
}

LatentParts latent_parts(const Model& model, const Batch& batch) {
  const auto whole = [](const BatchSequence& s) { return s.past == 0; };
  if (model.attention != AttentionKind::kMla || model.is_sparse() || batch.decodes() || batch.cut_keys > 0 ||
      std::all_of(batch.sequences.begin(), batch.sequences.end(), whole))
    return {};
  const std::int64_t fewest = fewest_blown_up(model.mla);
  const auto many = [&](const BatchSequence& s) { return s.count >= fewest || (whole(s) && s.count > 1); };
  const auto end = std::partition_point(batch.sequences.begin(), batch.sequences.end(), many);
  CHECK(std::none_of(end, batch.sequences.end(), many), "prompts stand behind decoding sequences");
  LatentParts parts;
  for (auto s = batch.sequences.begin(); s != end; ++s) parts.keys += s->length();
  if (parts.keys > 0)
    parts.blown_up = std::make_shared<const Batch>(Batch{batch.page_tokens, {batch.sequences.begin(), end}});
  if (end != batch.sequences.end())
    parts.absorbed = std::make_shared<const Batch>(Batch{batch.page_tokens, {end, batch.sequences.end()}});
  return parts;
}

}  // namespace moebius
