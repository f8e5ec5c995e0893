#include "workloads/serving/latent_parts.h"

#include <algorithm>
#include <memory>

namespace moebius {

std::int64_t fewest_blown_up(const Mla& mla) {
  const std::int64_t saved = 2 * mla.kv_rank + mla.rope_dim - (mla.nope_dim + mla.rope_dim) - mla.v_dim;
  if (saved <= 0) return 2;  // heads are wider than latents: only decoding absorbs
  return std::max<std::int64_t>(2, std::int64_t{mla.kv_rank} * (mla.nope_dim + mla.v_dim) / saved + 1);
}

namespace {

bool is_whole(const BatchSequence& sequence) {
  return sequence.past == 0;
}

bool blows_up(const BatchSequence& sequence, std::int64_t fewest) {
  return sequence.count >= fewest || (is_whole(sequence) && sequence.count > 1);
}

}  // namespace

void put_blown_up_first(const Model& model, Batch& batch) {
  if (model.attention != AttentionKind::kMla || model.is_sparse()) return;
  const std::int64_t fewest = fewest_blown_up(model.mla);
  std::stable_partition(batch.sequences.begin(), batch.sequences.end(),
                        [&](const BatchSequence& s) { return blows_up(s, fewest); });
}

LatentParts latent_parts(const Model& model, const Batch& batch) {
  if (model.attention != AttentionKind::kMla || model.is_sparse() || batch.decodes() || batch.cut_keys > 0 ||
      std::all_of(batch.sequences.begin(), batch.sequences.end(), is_whole))
    return {};
  const std::int64_t fewest = fewest_blown_up(model.mla);
  const auto end =
      std::find_if(batch.sequences.rbegin(), batch.sequences.rend(), [&](const BatchSequence& s) {
        return blows_up(s, fewest);
      }).base();
  LatentParts parts;
  for (auto s = batch.sequences.begin(); s != end; ++s) parts.keys += s->length();
  if (parts.keys > 0)
    parts.blown_up = std::make_shared<const Batch>(Batch{batch.page_tokens, {batch.sequences.begin(), end}});
  if (end != batch.sequences.end())
    parts.absorbed = std::make_shared<const Batch>(Batch{batch.page_tokens, {end, batch.sequences.end()}});
  return parts;
}

}  // namespace moebius
