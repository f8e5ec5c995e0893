// An iteration of all ranks of an instance whose experts stand apart: its batches in microbatches, and what
// each class of ranks does with them.
#pragma once

#include <optional>
#include <vector>

#include "workloads/schedule/layout.h"
#include "workloads/serving/separation/lower_separated.h"
#include "workloads/serving/separation/microbatches.h"
#include "workloads/serving/separation/separated_routes.h"

namespace moebius {

class SeparatedIteration {
 public:
  // Both outlive it. Prompts that are cut give a token for each part: where tokens count they stay whole.
  SeparatedIteration(const ServingJob& job, const ServingShape& shape, PromptCut cut);

  void draw(const SlotDraw* loads) { routes_.draw(loads); }  // as IterationRoutes
  // By replica; `launch`, `absorbed`: see Iteration.
  void begin(const std::vector<BatchPtr>& batches, std::optional<LaunchMode> launch = {},
             std::optional<bool> absorbed = {});
  FragmentPtr fragment(const RankClass& rank_class);
  int microbatches() const { return static_cast<int>(parts_.front().size()); }

 private:
  const ServingJob& job_;
  const ServingShape& shape_;
  PromptCut cut_;
  SeparatedRoutes routes_;
  std::vector<std::vector<BatchPtr>> parts_;  // by replica, by microbatch
  bool decodes_ = false;
  LaunchMode launch_ = LaunchMode::kHidden;
  std::optional<bool> absorbed_;
};

}  // namespace moebius
