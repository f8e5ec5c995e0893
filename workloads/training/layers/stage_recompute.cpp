// What the stages of a rank compute again under hybrid recomputation, against the budget of the rank.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/training/layers/stage_fragments.h"
#include "workloads/training/pipeline/two_batch.h"
#include "workloads/training/state/away_state.h"
#include "workloads/training/state/hybrid_recompute.h"
#include "workloads/training/state/optimizer.h"
#include "workloads/training/state/run_memory.h"

namespace moebius {
namespace {

constexpr int kCorrections = 8;  // of a budget, by what a run fills beyond it; with the last, of nothing

// What one chunk of a rank adds to its memory in a step: its own passes, pairs or its halves of them, its
// optimizer.
ClassMemory memory_of_chunk(const std::vector<Pass>& passes, const StageFragments& of, int chunk) {
  std::vector<MemoryPass> all;
  FragmentPtr pair, last_pair;
  for (const Pass& pass : passes) {
    const bool mine = pass.part.chunk == chunk;
    const bool reverses = pass.runs_backward() && pass.backward_part().chunk == chunk;
    if (pass.kind == PassKind::kPair && mine && reverses) {
      FragmentPtr& both = pass.last ? last_pair : pair;
      if (!both) both = overlap(pass.last ? *of.last_backward : *of.backward, *of.forward);
      all.push_back({both.get(), 0, 1});
      continue;
    }
    const bool whole = pass.kind == PassKind::kBackward || pass.kind == PassKind::kPair;
    if (pass.runs_forward() && mine) all.push_back({of.forward.get(), 1});
    if (reverses && whole) all.push_back({(pass.last ? of.last_backward : of.backward).get(), -1});
    if (reverses && !whole) all.push_back({of.inputs.get(), 0});
    if (pass.kind == PassKind::kBackwardWeight && mine)
      all.push_back({(pass.last ? of.last_weights : of.weights).get(), -1});
    if (pass.kind == PassKind::kOptimizer) all.push_back({of.optimizer.get(), 0});
  }
  return memory_of_passes(all);
}

using Choices = std::map<int, std::shared_ptr<const RecomputeChoice>>;  // by stage

// A stage of a rank that has several, judged by itself against a part of the rank's budget.
struct StageOfRank {
  StageSpec spec;
  std::unique_ptr<HybridRecompute> hybrid;
  double kept = 0, least = 0;  // bytes that it fills when nothing, and when all, is computed again
};

// Each stage keeps to a share of one sum of bytes: what it fills when all is computed again, in what all
// stages of its rank then fill. Their peaks do not fall together, so that the sum may be larger than the
// budget: of the sums with which the whole rank keeps to that it is the one that takes least time.
class RankRecompute {
 public:
  using PeakOf = std::function<Bytes(const Choices&)>;  // of the whole rank

  // `copies`: what is kept waits in host memory, so that computing it again may take less time.
  RankRecompute(std::vector<StageOfRank> stages, PeakOf peak_of, bool copies)
      : stages_(std::move(stages)),
        peak_of_(std::move(peak_of)),
        full_(std::make_shared<RecomputeChoice>()),
        copies_(copies) {
    full_->full = true;
  }

  // Where nothing fits, all layers of all stages, or none where that fills less.
  Choices choose(Bytes budget) {
    Choices kept = everywhere(nullptr);
    const bool keeps = peak_of_(kept) <= budget;
    if (keeps && !copies_) return kept;
    weigh();
    if (keeps) return fastest({kept, choices_at(std::max(most_, budget.value)), everywhere(full_)}, budget);
    Choices best = choices_at(budget.value);
    if (peak_of_(best) > budget) best = everywhere(full_);
    if (peak_of_(best) > budget) return peak_of_(kept) <= peak_of_(best) ? kept : best;
    double best_seconds = seconds_of(best);
    constexpr int kHalvings = 6;
    double low = budget.value, high = most_;
    for (int i = 0; i < kHalvings && low < high; ++i) {
      const double middle = (low + high) / 2;
      Choices choices = choices_at(middle);
      const bool fits = peak_of_(choices) <= budget;
      const double seconds = fits ? seconds_of(choices) : best_seconds;
      if (seconds < best_seconds) best = std::move(choices), best_seconds = seconds;
      (fits ? low : high) = middle;
    }
    return best;
  }

 private:
  // Of those that fit; the first does.
  Choices fastest(std::vector<Choices> all, Bytes budget) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < all.size(); ++i)
      if (seconds_of(all[i]) < seconds_of(all[best]) && peak_of_(all[i]) <= budget) best = i;
    return std::move(all[best]);
  }

  Choices everywhere(const std::shared_ptr<const RecomputeChoice>& choice) const {
    Choices choices;
    for (const StageOfRank& of : stages_) choices[of.spec.stage] = choice;
    return choices;
  }

  void weigh() {
    if (least_ > 0) return;
    for (StageOfRank& of : stages_) {
      of.kept = of.hybrid->cost_of(of.spec, nullptr).peak.value;
      of.least = of.hybrid->cost_of(of.spec, full_).peak.value;
      least_ += of.least;
    }
    for (const StageOfRank& of : stages_) most_ = std::max(most_, of.kept / of.least * least_);
  }

  Choices choices_at(double sum) const {
    Choices choices;
    for (const StageOfRank& of : stages_)
      choices[of.spec.stage] = of.hybrid->choose(of.spec, {sum * of.least / least_});
    return choices;
  }

  double seconds_of(const Choices& choices) const {
    double seconds = 0;
    for (const StageOfRank& of : stages_)
      seconds += of.hybrid->seconds_of(of.spec, choices.at(of.spec.stage));
    return seconds;
  }

  std::vector<StageOfRank> stages_;
  PeakOf peak_of_;
  std::shared_ptr<RecomputeChoice> full_;
  bool copies_;
  double least_ = 0, most_ = 0;  // sums: of all computed again; with which no stage computes anything again
};

}  // namespace

std::shared_ptr<const RecomputeChoice> FragmentStore::recompute_of(const StageSpec& stage) {
  const TrainingPlan& plan = *input_.plan;
  if (plan.recompute != RecomputePolicy::kHybrid || input_.workload->forward_only) return nullptr;
  const auto found = recompute_.find(stage.stage);
  if (found != recompute_.end()) return found->second;
  if (placement_.chunks() > 1) {
    recompute_.merge(choices_of_rank(stage));
    return recompute_.at(stage.stage);
  }
  const std::vector<Pass>& passes = passes_of(stage);
  HybridRecompute hybrid(
      plan, [this](const StageSpec& spec) { return lower_with_optimizer(spec); },
      [&](const StageFragments& of) { return memory_of_chunk(passes, of, stage.chunk); });
  std::shared_ptr<const RecomputeChoice> choice = hybrid.choose(stage);
  // Weighed by the loads of this draw. Where others fill more, again for a budget that is as much smaller.
  Bytes weighed = plan.recompute_budget;
  for (int i = 0; i < kCorrections && !fixed_routes(); ++i) {
    const Bytes over = peak_of_run(stage, {{stage.stage, choice}}) - plan.recompute_budget;
    if (over.value <= 0) break;
    weighed = i + 1 < kCorrections ? weighed - over : Bytes{};
    choice = hybrid.choose(stage, weighed);
  }
  return recompute_[stage.stage] = std::move(choice);
}

FragmentStore::Choices FragmentStore::choices_of_rank(const StageSpec& stage) {
  const std::vector<Pass>& passes = passes_of(stage);
  std::vector<StageOfRank> stages;
  for (int chunk = 0; chunk < placement_.chunks(); ++chunk) {
    StageSpec spec = spec_of(rank_of(stage), stage.shard, chunk);
    spec.step = stage.step, spec.microbatch = stage.microbatch;
    spec.packed = stage.packed, spec.counted_tokens = stage.counted_tokens;
    const auto lower = [this](const StageSpec& of) { return lower_with_optimizer(of); };
    const auto memory_with = [&passes, chunk](const StageFragments& of) {
      return memory_of_chunk(passes, of, chunk);
    };
    stages.push_back({spec, std::make_unique<HybridRecompute>(*input_.plan, lower, memory_with)});
  }
  const auto peak_of = [&](const Choices& choices) { return peak_of_rank(stage, choices); };
  const Bytes budget = input_.plan->recompute_budget;
  RankRecompute rank(std::move(stages), peak_of, input_.plan->offload.activations);
  Choices best = rank.choose(budget);
  Bytes weighed = budget;
  for (int i = 0; i < kCorrections && !fixed_routes(); ++i) {
    const Bytes over = peak_of_run(stage, best) - budget;
    if (over.value <= 0) break;
    weighed = i + 1 < kCorrections ? weighed - over : Bytes{};
    best = rank.choose(weighed);
  }
  const Bytes peak = peak_of(best);
  if (peak > budget && input_.plan->keeps_to_budget)
    throw run_error(
        fmt::format("the stages of pipeline rank {} do not fit in their budget of {}: with all layers "
                    "computed again they take {}",
                    rank_of(stage), to_text(budget), to_text(peak)));
  return best;
}

FragmentStore FragmentStore::trial_of(Choices choices) const {
  FragmentStore trial(input_, slices_);
  trial.routes_ = routes_;
  trial.passes_ = passes_;
  trial.recompute_ = std::move(choices);
  return trial;
}

Bytes FragmentStore::peak_of_run(const StageSpec& stage, Choices choices) {
  const std::vector<Pass>& passes = passes_of(stage);
  FragmentStore trial = trial_of(std::move(choices));
  return memory_of_run(trial, *input_.workload, {rank_of(stage), stage.shard, &passes, {}}).peak;
}

// As the run will have it: pairs and the optimizer of all stages are one fragment each.
Bytes FragmentStore::peak_of_rank(const StageSpec& stage, Choices choices) {
  const std::vector<Pass>& all = passes_of(stage);
  FragmentStore trial = trial_of(std::move(choices));
  std::vector<FragmentPtr> held;
  std::vector<MemoryPass> passes;
  for (Pass pass : all) {
    pass.part.microbatch = pass.backward.microbatch = 0;
    held.push_back(trial.get(rank_of(stage), stage.shard, stage.step, pass));
    const int change = (pass.runs_forward() ? 1 : 0) - (pass.writes_weights() ? 1 : 0);
    passes.push_back({held.back().get(), change, pass.runs_forward() ? 1 : 0});
  }
  return memory_of_passes(passes).peak;
}

StageFragments FragmentStore::lower_with_optimizer(const StageSpec& stage) {
  StageFragments all = lower(stage);
  FragmentBuilder builder = lower_optimizer(input_, stage, all.parameters);
  all.optimizer = freeze_with_away_state(*input_.plan, {}, builder);
  return all;
}

int FragmentStore::rank_of(const StageSpec& stage) const {
  int rank = 0;
  while (placement_.stage_of(rank, stage.chunk) != stage.stage) ++rank;
  return rank;
}

const std::vector<Pass>& FragmentStore::passes_of_rank(int rank) {
  if (!passes_) {
    const int microbatches = input_.workload->num_microbatches(*input_.plan);
    passes_ = std::make_shared<const std::vector<std::vector<Pass>>>(
        pipeline_passes(pipeline_spec(*input_.plan, microbatches)));
  }
  return (*passes_)[rank];
}

}  // namespace moebius
