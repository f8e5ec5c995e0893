// Passes of a pipeline on a clock: how long they take in all when nothing but other passes holds them up.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>

#include "workloads/training/pipeline/pipeline.h"

namespace moebius {

// Of one chunk. A whole backward pass takes input + weight.
struct ClockedPasses {
  double forward = 1, input = 1, weight = 1, pair = 3;
};

class PipelineClock {
 public:
  PipelineClock(const PipelineSpec& spec, const ClockedPasses& times)
      : spec_(spec),
        times_(times),
        placement_(spec.kind, spec.ranks, spec.chunks),
        passes_(pipeline_passes(spec)) {}

  // The end of the last pass of any rank.
  double run() {
    std::vector<std::size_t> next(passes_.size(), 0);
    std::vector<double> free(passes_.size(), 0);
    for (const std::vector<int>& turn : issue_turns(passes_, placement_)) {
      for (const int rank : turn) waiting_.push_back(rank);
      while (!waiting_.empty()) {
        // Within a turn ranks may need each other in any order.
        const int rank = waiting_.front();
        waiting_.erase(waiting_.begin());
        const Pass& pass = passes_[rank][next[rank]];
        if (!known(rank, pass)) {
          waiting_.push_back(rank);
          continue;
        }
        ++next[rank];
        free[rank] = std::max(free[rank], ready(rank, pass)) + duration(pass);
        note(rank, pass, free[rank]);
      }
    }
    return *std::max_element(free.begin(), free.end());
  }

  const std::vector<std::vector<Pass>>& passes() const { return passes_; }

 private:
  using Work = std::tuple<bool, int, int, int>;  // forward, direction, stage, microbatch
  Work work(int rank, bool forward, const PassPart& part, int step) const {
    return {forward, placement_.both_ways() ? part.chunk : 0, placement_.stage_of(rank, part.chunk) + step,
            part.microbatch};
  }
  // What a pass needs of others, if any.
  std::vector<Work> needs(int rank, const Pass& pass) const {
    std::vector<Work> all;
    if (pass.runs_forward() && placement_.stage_of(rank, pass.part.chunk) > 0)
      all.push_back(work(rank, true, pass.part, -1));
    if (!pass.runs_backward()) return all;
    all.push_back(work(rank, true, pass.backward_part(), 0));
    if (placement_.stage_of(rank, pass.backward_part().chunk) + 1 < placement_.stages())
      all.push_back(work(rank, false, pass.backward_part(), 1));
    return all;
  }
  bool known(int rank, const Pass& pass) const {
    const std::vector<Work> all = needs(rank, pass);
    return std::all_of(all.begin(), all.end(), [&](const Work& w) { return done_.count(w) > 0; });
  }
  double ready(int rank, const Pass& pass) const {
    double time = 0;
    for (const Work& w : needs(rank, pass)) time = std::max(time, done_.at(w));
    return time;
  }
  void note(int rank, const Pass& pass, double end) {
    if (pass.kind == PassKind::kOptimizer) return;
    if (pass.runs_forward()) done_[work(rank, true, pass.part, 0)] = end;
    if (pass.runs_backward()) done_[work(rank, false, pass.backward_part(), 0)] = end;
  }
  double duration(const Pass& pass) const {
    switch (pass.kind) {
      case PassKind::kForward:
        return times_.forward;
      case PassKind::kBackward:
        return times_.input + times_.weight;
      case PassKind::kBackwardInput:
        return times_.input;
      case PassKind::kBackwardWeight:
        return times_.weight;
      case PassKind::kPair:
        return times_.pair;
      case PassKind::kLoad:
      case PassKind::kOptimizer:
        return 0;
    }
    return 0;
  }

  PipelineSpec spec_;
  ClockedPasses times_;
  StagePlacement placement_;
  std::vector<std::vector<Pass>> passes_;
  std::map<Work, double> done_;
  std::vector<int> waiting_;
};

// The largest number of chunks of microbatches whose activations a rank keeps: from the forward pass to the
// pass that writes the gradients of the weights.
inline int most_alive(const std::vector<Pass>& passes) {
  int alive = 0, most = 0;
  for (const Pass& pass : passes) {
    if (pass.runs_forward()) ++alive;
    most = std::max(most, alive);
    if (pass.writes_weights()) --alive;
  }
  return most;
}

}  // namespace moebius
