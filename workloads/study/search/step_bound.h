// The least that a step of a plan can take and hold, from what its stages take and hold: every pass as a map
// from what it waits for to what waits for it, in the order of the pipeline's schedule (the critical path),
// no transfer ever delayed by another. Where the order depends on what passes take, in no order: each rank
// runs all of its passes after the first has come to it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "workloads/study/search/stage_probes.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

struct StepBound {
  double seconds = 0;
  double busy = 0;                       // seconds of computing, mean over ranks
  double passes_s = 0, passes_busy = 0;  // of them, without the optimizer
  std::vector<double> activations;  // bytes that each pipeline rank keeps for microbatches, at its fullest
};

// The passes of a pipeline in an order in which each comes after those that it waits for.
struct PassOrder {
  std::vector<RankPass> turns;
  bool depends_on_times = false;  // the turns are those for equal times: others are as possible

  // Of a rank that compute, each with how many are alike but for their microbatches.
  using Counts = std::vector<std::pair<Pass, int>>;
  std::vector<Counts> counts;
};

class PassOrders {
 public:
  static constexpr std::int64_t kMostPasses = 400'000;
  // By several threads. Null for more passes than that.
  std::shared_ptr<const PassOrder> of(const TrainingPlan& plan, int microbatches);

 private:
  using Key = std::tuple<int, int, int, int, bool>;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const PassOrder>> known_;
};

StepBound step_bound(const PlanFacts& facts, const PassOrder& order, const StagePlacement& placement,
                     int microbatches);

std::set<std::pair<int, int>> pairs_of(const PassOrder::Counts& counts);  // chunks of forward, backward pass

// Of the passes of one rank, one after the other and none waiting for other ranks.
double rank_bound(const PlanFacts::Rank& facts, const PassOrder::Counts& counts);

}  // namespace moebius
