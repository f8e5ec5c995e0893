#include "workloads/training/state/run_memory.h"

#include <algorithm>
#include <map>
#include <utility>

namespace moebius {
namespace {

// A pass as it is lowered once, whatever its microbatch.
MemoryPass memory_pass(const Pass& pass, const Fragment* fragment, bool forward_only) {
  if (pass.kind == PassKind::kLoad || forward_only) return {fragment, 0, 0};  // nothing outlives its pass
  const int change = (pass.runs_forward() ? 1 : 0) - (pass.writes_weights() ? 1 : 0);
  return {fragment, change, pass.runs_forward() ? 1 : 0};
}

// The passes of one step after the other, with the routes that each draws.
class Steps {
 public:
  Steps(FragmentStore& store, const TrainingWorkload& work, const ClassRun& run)
      : store_(store), work_(work), run_(run) {
    const bool alike = (store.fixed_routes() || !work.popularity.per_microbatch) && !work.lengths;
    for (Pass pass : *run.passes) {
      // The first forward pass of a step may gather what the others find. Scores are those of the first step.
      if (!store.scores_differ()) {
        pass.part.microbatch = alike ? std::min(pass.part.microbatch, 1) : 0;
        pass.backward.microbatch = 0;
      }
      held_.push_back(store.get(run.rank, run.shard, work.first_step, pass));
    }
  }

  ClassMemory memory_of(int step) {
    drawn_.clear();
    std::vector<MemoryPass> passes;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const Pass& pass = (*run_.passes)[i];
      passes.push_back(memory_pass(pass, held_[i].get(), work_.forward_only));
      if (held_[i]->routes.empty() || store_.fixed_routes()) continue;
      passes.back().routes = drawn(i, step, pass.part.microbatch);
      if (pass.kind == PassKind::kPair)
        passes.back().second_routes = drawn(i, step, pass.backward.microbatch);
    }
    return memory_of_passes(passes, run_.members);
  }

 private:
  const std::vector<RoutePtr>* drawn(std::size_t pass, int step, int microbatch) {
    if (!work_.popularity.per_microbatch) microbatch = 0;
    const auto [place, added] = drawn_.try_emplace({held_[pass].get(), microbatch});
    if (added) place->second = store_.routes_of(*held_[pass], step, microbatch);
    return &place->second;
  }

  FragmentStore& store_;
  const TrainingWorkload& work_;
  const ClassRun& run_;
  std::vector<FragmentPtr> held_;  // a store that forgets them would leave nothing behind them
  std::map<std::pair<const Fragment*, int>, std::vector<RoutePtr>> drawn_;  // by microbatch, of this step
};

}  // namespace

ClassMemory memory_of_run(FragmentStore& store, const TrainingWorkload& work, const ClassRun& run) {
  Steps steps(store, work, run);
  ClassMemory fullest = steps.memory_of(work.first_step);
  if (store.fixed_routes()) return fullest;
  std::vector<Bytes> after = std::move(fullest.after_pass);
  for (int step = work.first_step + 1; step < work.steps; ++step) {
    ClassMemory memory = steps.memory_of(step);
    after.insert(after.end(), memory.after_pass.begin(), memory.after_pass.end());
    if (memory.peak > fullest.peak) fullest = std::move(memory);
  }
  fullest.after_pass = std::move(after);
  return fullest;
}

}  // namespace moebius
