#include "workloads/serving/separation/separated_iteration.h"

#include <algorithm>

#include "workloads/serving/separation/separated_layout.h"

namespace moebius {

SeparatedIteration::SeparatedIteration(const ServingJob& job, const ServingShape& shape, PromptCut cut)
    : job_(job), shape_(shape), cut_(cut), routes_(job) {}

// All replicas have as many microbatches, as the experts take in those of one turn together.
void SeparatedIteration::begin(const std::vector<BatchPtr>& batches, std::optional<LaunchMode> launch,
                               std::optional<bool> absorbed) {
  int parts = job_.plan.apart.microbatches;
  decodes_ = true;
  for (const BatchPtr& batch : batches) {
    parts = parts_of(*batch, parts, cut_);
    decodes_ = decodes_ && job_.plan.decodes(*batch);
  }
  launch_ = launch ? *launch : launch_of(job_.plan, *batches.front(), decodes_);
  absorbed_ = absorbed;
  parts_.clear();
  for (const BatchPtr& batch : batches) {
    const bool repeated = !parts_.empty() && batch == batches[parts_.size() - 1];
    parts_.push_back(repeated ? parts_.back() : split_batch(*batch, parts, cut_));
  }
  routes_.begin(parts_);
}

FragmentPtr SeparatedIteration::fragment(const RankClass& rank_class) {
  const SeparatedPass pass{shape_,
                           microbatches(),
                           decodes_,
                           launch_,
                           [this](int layer, int microbatch) { return routes_.get(layer, microbatch); },
                           absorbed_};
  const int rank = rank_class.representative();
  if (holds_experts(job_.plan, rank_class)) return lower_expert_rank(pass, rank - job_.plan.dp);
  return lower_attention_rank(pass, parts_[rank]);
}

}  // namespace moebius
