// What the stages of a plan take and hold, each lowered once and remembered for all plans that lower it
// alike: a layer does not know how many replicas there are, nor in which order its microbatches come.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "workloads/cost/remembered_costs.h"
#include "workloads/scenario/scenario.h"
#include "workloads/study/search/least_seconds.h"
#include "workloads/study/search/pass_map.h"
#include "workloads/study/search/transfer_times.h"
#include "workloads/training/layers/stage_fragments.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

// A stage of the model on a rank: what its passes take; and, unless it was asked for without, what it holds
// and its optimizer. Bytes are of device memory; of parameters that all ranks hold, of experts.
struct ChunkFacts {
  PassMap forward, backward, inputs, weights;  // those that its schedule has
  struct Held {
    double weights = 0, gradients = 0, states = 0;
  };
  Held dense, experts;  // for the whole run
  double kept = 0;      // what a forward pass leaves for its microbatch
  double left = 0;      // of that, and of what it adds, what the first part of a split reverse pass leaves
  // Of the optimizer, at least: computing; on the lane of gradients and weights, the sums of gradients where
  // no pass has them, and all else.
  double update_s = 0, sums_s = 0, gathers_s = 0;

  double state_bytes() const;  // all that stays
};

// What communication takes: what its bytes take, or what it takes on an idle network where that is known.
enum class Transfers : std::uint8_t { kBytes, kNetwork };

// By pipeline rank and chunk.
struct PlanFacts {
  struct Rank {
    std::vector<std::shared_ptr<const ChunkFacts>> chunks;
    std::map<std::pair<int, int>, std::shared_ptr<const PassMap>> pairs;  // chunks of forward, backward pass

    const PassMap& of(const Pass& pass) const;  // one that computes, but for the optimizer
  };
  std::vector<Rank> ranks;
  bool sums_last = false;    // gradients are summed when all passes have ended
  bool shares_ends = false;  // the first and the last stage have parameters in common
};

class StageProbes {
 public:
  // The scenario's model, cluster and workload; all plans that are asked for are plans for it. Popularity is
  // taken as balanced.
  // `transfers`: null where nobody knows more than bytes.
  StageProbes(const Scenario& scenario, const std::string& data, KnowTransfers transfers = {});

  // By several threads. The plan is legal. Hybrid recomputation counts as none: memory is then no bound.
  PlanFacts facts(const TrainingPlan& plan, const TrainingWorkload& workload,
                  Transfers transfers = Transfers::kBytes);
  // How long the passes of one pipeline rank last at least, of its pairs those that `pairs` has: its stages
  // by themselves, without neighbours, so that ranks of many plans are alike. Where passes run in pairs, a
  // reverse pass in two parts is what the whole one computes, all of it in its second part.
  using ChunkPairs = std::set<std::pair<int, int>>;
  PlanFacts::Rank rank_passes(const TrainingPlan& plan, const TrainingWorkload& workload, int rank,
                              const ChunkPairs& pairs);
  // A slice of the model by itself, without neighbours; `weighed`: with what it holds.
  std::shared_ptr<const ChunkFacts> part(const TrainingPlan& plan, const TrainingWorkload& workload,
                                         const StageSlice& slice, Costing costing, bool weighed);
  std::size_t lowered() const { return lowered_; }  // different stages, so far

  // The layers of each stage; remembered by the number of stages where the plan does not give its own cuts.
  std::shared_ptr<const std::vector<StageSlice>> slices(const TrainingPlan& plan);

 private:
  struct Asked;
  static StageSpec lone(const Asked& asked, const StageSlice& slice);
  std::shared_ptr<const ChunkFacts> chunk(const Asked& asked, int rank, const StageSpec& spec);
  PlanFacts::Rank rank_facts(const Asked& asked, int rank, const ChunkPairs& pairs);
  std::shared_ptr<const PassMap> pair(const Asked& asked, int rank, const StageSpec& forward,
                                      const StageSpec& backward);
  // Once for each plan that is asked for, with routes that are remembered for all.
  const StageFragments& lower(const Asked& asked, const StageSpec& spec);
  std::shared_ptr<const ChunkFacts> known_chunk(const Asked& asked, const std::string& key);
  std::shared_ptr<const ChunkFacts> measured(const Asked& asked, int rank, const StageSpec& spec);
  std::vector<double> least_of(const Asked& asked, const Fragment& fragment);
  PassMap map_of(const Asked& asked, int rank, const FragmentPtr& fragment);
  void time_update(const Asked& asked, const Fragment& update, ChunkFacts& facts);
  // Null where nobody knows.
  std::shared_ptr<TransferTimes> transfers_of(const TrainingPlan& plan);
  void raise_transfers(const Asked& asked, int rank, const Fragment& fragment,
                       std::vector<double>& seconds) const;
  std::unique_ptr<RememberedCosts> take_costs();
  void give_back(std::unique_ptr<RememberedCosts> costs);

  const Scenario& scenario_;
  std::shared_ptr<const CostSource> source_;
  KnowTransfers know_transfers_;
  std::mutex mutex_;  // of what follows
  std::map<std::string, std::shared_ptr<const ChunkFacts>> chunks_;
  std::map<std::string, std::shared_ptr<const PassMap>> pairs_;
  std::map<std::string, RouteCache> routes_;  // by what they are drawn for
  std::map<std::pair<Slicing, int>, std::shared_ptr<const std::vector<StageSlice>>>
      slices_;                                                       // by number of stages
  std::map<std::string, std::shared_ptr<TransferTimes>> transfers_;  // by the groups of ranks
  std::vector<std::unique_ptr<RememberedCosts>> costs_;
  std::size_t lowered_ = 0;
};

}  // namespace moebius
