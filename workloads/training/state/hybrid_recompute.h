// Hybrid recomputation: which ops of which layers of a stage run again, so that a step fits in a budget and
// computes least again.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "workloads/training/layers/stage_fragments.h"
#include "workloads/training/state/memory.h"

namespace moebius {

// What a choice costs: the fullest moment of a step, and the seconds that the passes of one microbatch take
// longer than without recomputation: each op at its roofline (FLOP rate and memory rate of the plan), or what
// is copied to the host beside the forward pass, and back beside the reverse pass, where that takes longer.
struct RecomputeCost {
  Bytes peak = {};
  double seconds = 0;
};

// Op groups of layers are items of a knapsack: bytes that a microbatch then does not keep, seconds to compute
// them again. Chosen are those of least seconds that free what is missing over all microbatches alive at the
// peak (exact to 1/4096 of it, always to the safe side); then the stage is lowered with them, and if tensors
// that depend on each other freed less than their sum, more is asked for. Communication is not repeated.
// Layers run again as a whole only where the items do not free enough, or would take longer. Where copies to
// and from the host are what passes wait for, items whose tensors stand there are added as long as that makes
// them shorter. Of one stage.
class HybridRecompute {
 public:
  using Lower = std::function<StageFragments(const StageSpec&)>;
  using MemoryOf = std::function<ClassMemory(const StageFragments&)>;  // of a step

  HybridRecompute(const TrainingPlan& plan, Lower lower, MemoryOf memory)
      : plan_(plan), lower_(std::move(lower)), memory_(std::move(memory)) {}

  // Null: everything is kept. Throws run_error where whole layers do not fit in the plan's budget either.
  std::shared_ptr<const RecomputeChoice> choose(const StageSpec& stage);
  // The same against another budget; where nothing fits, whole layers.
  std::shared_ptr<const RecomputeChoice> choose(const StageSpec& stage, Bytes budget);
  RecomputeCost cost_of(const StageSpec& stage, const std::shared_ptr<const RecomputeChoice>& choice);
  double seconds_of(const StageSpec& stage, const std::shared_ptr<const RecomputeChoice>& choice);  // in all

 private:
  struct Item {
    int layer = 0;
    RecomputeOp op = RecomputeOp::kNorm;
    double bytes = 0, seconds = 0;
    double copied = 0;  // seconds of its copy, each way
  };
  // Of the passes of a microbatch: what they compute, and copy meanwhile.
  struct Seconds {
    double forward = 0, out = 0, reverse = 0, in = 0;
    double total() const { return std::max(forward, out) + std::max(reverse, in); }
  };
  StageFragments lowered(const StageSpec& stage, const std::shared_ptr<const RecomputeChoice>& choice);
  Seconds seconds_of(const StageFragments& fragments) const;
  std::shared_ptr<const RecomputeChoice> fitting(const StageSpec& stage, Bytes budget);
  std::shared_ptr<const RecomputeChoice> with_fewer_copies(const StageSpec& stage, Bytes budget,
                                                           std::shared_ptr<const RecomputeChoice> choice);
  std::vector<Item> items_of(const StageSpec& stage);
  static std::shared_ptr<RecomputeChoice> pick(const std::vector<Item>& items, double bytes);

  const TrainingPlan& plan_;
  Lower lower_;
  MemoryOf memory_;
  // What no budget changes, computed once where anything is computed again.
  struct Known {
    double kept_seconds = 0;  // of the reverse pass when everything is kept
    std::shared_ptr<const RecomputeChoice> full;
    RecomputeCost of_full;
    std::vector<Item> items;
  };
  const Known& known(const StageSpec& stage);

  std::optional<ClassMemory> kept_;  // when everything is
  std::optional<Known> known_;
};

}  // namespace moebius
