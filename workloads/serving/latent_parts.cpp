#include "workloads/serving/latent_parts.h"

#include <algorithm>
#include <functional>
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

// What of a batch blows up.
class BlowsUp {
 public:
  BlowsUp(const Model& model, const Batch& batch, const LatentRule& rule)
      : by_sequence_(rule.below == 0), drafts_(rule.drafts), fewest_(fewest_blown_up(model.mla)) {
    if (by_sequence_) return;
    std::int64_t cached = 0;
    for (const BatchSequence& sequence : batch.sequences)
      if (is_prompt(sequence)) cached += sequence.past;
    absorbed_ = rule.absorbed.value_or(absorbs(rule.below, cached));
  }
  bool operator()(const BatchSequence& sequence) const {
    if (!by_sequence_) return !absorbed_ && is_prompt(sequence);
    return sequence.count >= fewest_ || (is_whole(sequence) && sequence.count > 1);
  }
  bool all_absorbed() const { return absorbed_; }

 private:
  bool is_prompt(const BatchSequence& sequence) const {
    return sequence.count > 1 + drafts_ || (is_whole(sequence) && sequence.count > 1);
  }

  bool by_sequence_, absorbed_ = false;
  int drafts_;
  std::int64_t fewest_;
};

}  // namespace

void put_blown_up_first(const Model& model, Batch& batch, const LatentRule& rule) {
  if (!attends_over_latents(model)) return;
  const BlowsUp blows_up(model, batch, rule);
  std::stable_partition(batch.sequences.begin(), batch.sequences.end(), std::cref(blows_up));
}

LatentParts latent_parts(const Model& model, const Batch& batch, const LatentRule& rule) {
  if (!attends_over_latents(model) || batch.decodes() || batch.cut_keys > 0) return {};
  const BlowsUp blows_up(model, batch, rule);
  LatentParts parts;
  parts.none = blows_up.all_absorbed();
  if (parts.none) return parts;
  if (std::all_of(batch.sequences.begin(), batch.sequences.end(), is_whole)) return {};
  const auto end = std::find_if(batch.sequences.rbegin(), batch.sequences.rend(), std::cref(blows_up)).base();
  for (auto s = batch.sequences.begin(); s != end; ++s) parts.keys += s->length();
  if (parts.keys > 0)
    parts.blown_up = std::make_shared<const Batch>(Batch{batch.page_tokens, {batch.sequences.begin(), end}});
  if (end != batch.sequences.end())
    parts.absorbed = std::make_shared<const Batch>(Batch{batch.page_tokens, {end, batch.sequences.end()}});
  return parts;
}

}  // namespace moebius
