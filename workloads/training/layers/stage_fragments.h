// The frozen fragments of the stages, lowered when first asked for and shared by all ranks that run them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "workloads/routing/expert_loads.h"
#include "workloads/training/layers/backward.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

// What a chunk of a rank runs. `last`: reduces the gradients that it completes.
struct StageFragments {
  FragmentPtr load, first_load;               // what the forward pass reads of the batch; null: it is there
  FragmentPtr forward, first_forward;         // the second gathers weights that were updated; null: none does
  FragmentPtr backward, last_backward;        // whole; null where the schedule has none
  FragmentPtr inputs, weights, last_weights;  // in two parts; the same
  // Where weights stay gathered between passes: as they stand before and behind each pass of a step, by
  // whether it reduces; above is the pass that has least to gather. Pairs: of their halves.
  std::map<std::tuple<PassKind, HeldWeights, bool>, FragmentPtr> held;
  std::vector<StageParameter> parameters;
  FragmentPtr optimizer;  // of this chunk alone, where hybrid recomputation weighs it; else null
};

class FragmentStore {
 public:
  // `slices`: by stage of the model.
  FragmentStore(const LoweringInput& input, std::vector<StageSlice> slices);

  // What `pass` of a pipeline rank runs, at one position of the rank's groups. With routes that change from
  // step to step or from microbatch to microbatch there is one fragment for each, and so with packed
  // sequences.
  FragmentPtr get(int rank, ShardPosition shard, int step, const Pass& pass);
  // Fragments of this microbatch of the step, and of earlier steps, are not asked for any more.
  void forget(int step, int microbatch);

  const std::vector<StageSlice>& slices() const { return slices_; }
  const StagePlacement& placement() const { return placement_; }
  const ExpertLoads& loads() const { return loads_; }  // of what was lowered so far

  bool fixed_routes() const;   // one draw for all steps, layers and microbatches
  bool scores_differ() const;  // whole scores stand in memory, of sequences of each microbatch's own lengths
  // The routes of a fragment as another step, and where these differ another microbatch, draws them.
  std::vector<RoutePtr> routes_of(const Fragment& fragment, int step, int microbatch);

  // Routes that another store of the same degrees and tokens has drawn, so that they are not drawn again.
  const RouteCache& routes() const { return routes_; }
  void use(RouteCache routes) { routes_ = std::move(routes); }

  StageSpec spec_of(int rank, ShardPosition shard, int chunk) const;
  StageFragments lower(const StageSpec& stage);  // by itself: not kept

 private:
  // Rank, chunk, tensor, expert, part of it, dense; replica, where each packs sequences of its own.
  using Place = std::tuple<int, int, int, int, int, int, int>;
  using Key = std::tuple<int, int, Place>;  // step, microbatch; -1: of any
  using Halves = std::pair<FragmentPtr, FragmentPtr>;

  const StageFragments& fragments(int rank, ShardPosition shard, int step, const PassPart& part);
  FragmentPtr load(int rank, ShardPosition shard, int step, const PassPart& part);
  FragmentPtr forward(int rank, ShardPosition shard, int step, const Pass& pass);
  FragmentPtr backward(int rank, ShardPosition shard, int step, const Pass& pass);
  FragmentPtr pair(int rank, ShardPosition shard, int step, const Pass& pass);
  FragmentPtr optimizer(int rank, ShardPosition shard, int step);
  // Of hybrid recomputation: what this stage computes again, settled when it is first asked for.
  std::shared_ptr<const RecomputeChoice> recompute_of(const StageSpec& stage);
  int rank_of(const StageSpec& stage) const;  // of the pipeline
  const std::vector<Pass>& passes_of(const StageSpec& stage) { return passes_of_rank(rank_of(stage)); }
  const std::vector<Pass>& passes_of_rank(int rank);  // in one step
  const std::vector<int>& chunks_of_update(int rank);
  StageFragments lower_with_optimizer(const StageSpec& stage);
  // Of several stages of a rank: all of them at once.
  using Choices = std::map<int, std::shared_ptr<const RecomputeChoice>>;  // by stage
  Choices choices_of_rank(const StageSpec& stage);
  FragmentStore trial_of(Choices choices) const;
  Bytes peak_of_rank(const StageSpec& stage, Choices choices);  // by the loads that this stage draws
  Bytes peak_of_run(const StageSpec& stage, Choices choices);   // by those of all steps and microbatches
  FragmentPtr freeze(FragmentBuilder& builder, const std::set<std::uint32_t>& away) const;
  std::set<std::uint32_t> away_of(const ForwardPass& forward) const;
  std::set<std::uint32_t> weights_before(const StageSpec& stage);
  // Of those passes of the chunk that the builder has the ops of: as they find and leave weights.
  void hold_weights(const StageSpec& stage, PassKind kind, bool last, const ForwardPass& forward,
                    FragmentBuilder& builder, StageFragments& fragments);
  void hold_reverse_weights(const StageSpec& stage, ForwardPass& forward, BackwardPass& pass,
                            BackwardPass* last, StageFragments& fragments);
  void lower_whole(const StageSpec& stage, ForwardPass& forward, StageFragments& fragments);
  void lower_split(const StageSpec& stage, ForwardPass& forward, StageFragments& fragments);
  bool packs() const { return input_.workload->lengths.has_value(); }
  double counted_tokens(int step);            // of the packed sequences of a step
  int packed_replica(int step, int replica);  // whose rows that replica's ranks compute

  LoweringInput input_;
  std::vector<StageSlice> slices_;
  StagePlacement placement_;
  RouteCache routes_;
  ExpertLoads loads_;
  std::map<Key, StageFragments> known_;
  std::map<int, double> counted_;                                    // by step
  std::map<int, int> heaviest_;                                      // likewise, of replicas that are folded
  std::map<int, std::shared_ptr<const RecomputeChoice>> recompute_;  // by stage
  std::shared_ptr<const std::vector<std::vector<Pass>>> passes_;     // by rank, once they are asked for
  std::map<Place, FragmentPtr> optimizers_;
  std::map<int, std::vector<int>> chunks_of_update_;  // by rank
  std::map<Halves, FragmentPtr> pairs_;
};

}  // namespace moebius
