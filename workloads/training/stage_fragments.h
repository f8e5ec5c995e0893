// The frozen fragments of the stages, lowered when first asked for and shared by all ranks that run them.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "workloads/routing/expert_loads.h"
#include "workloads/training/lowering.h"

namespace moebius {

struct StageFragments {
  FragmentPtr forward, backward, last_backward, optimizer;
};

class FragmentStore {
 public:
  FragmentStore(const LoweringInput& input, std::vector<StageSlice> slices);

  // The fragments of a stage at one position of its groups. With routes that change from step to step or from
  // microbatch to microbatch there is one set for each; keep the result only while it is being issued.
  const StageFragments& get(int stage, ShardPosition shard, int step, int microbatch);
  // Fragments of microbatches up to here (of this step) and of earlier steps are not asked for any more.
  void forget_before(int step, int microbatch);

  const std::vector<StageSlice>& slices() const { return slices_; }
  const ExpertLoads& loads() const { return loads_; }  // of what was lowered so far

 private:
  // Step, microbatch, stage, tensor, expert, replica; -1: of any.
  using Key = std::tuple<int, int, int, int, int, int>;
  StageFragments lower(const StageSpec& stage);
  bool fixed_routes() const;  // one draw for all steps, layers and microbatches
  bool packs() const { return input_.workload->lengths.has_value(); }
  double counted_tokens(int step);  // of the packed sequences of a step

  LoweringInput input_;
  std::vector<StageSlice> slices_;
  RouteCache routes_;
  ExpertLoads loads_;
  std::map<Key, StageFragments> known_;
  std::map<int, double> counted_;  // by step
};

}  // namespace moebius
