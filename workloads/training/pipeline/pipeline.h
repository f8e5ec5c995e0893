// Pipeline schedules: which stages of the model a pipeline rank holds, and in which order it runs the forward
// and backward passes of their microbatches.
#pragma once

#include <vector>

#include "workloads/training/plan.h"

namespace moebius {

enum class PassKind : std::uint8_t {
  kForward,
  kBackward,        // gradients of inputs and of weights
  kBackwardInput,   // gradients of inputs alone
  kBackwardWeight,  // the gradients of weights that a kBackwardInput left
  kPair,            // a forward and a backward pass of two microbatches, layer by layer beside each other
  kOptimizer,
  kLoad,  // the chunk's part of a microbatch comes from storage: see with_loads()
};

// One half of a pass: what it works on.
struct PassPart {
  int chunk = 0;  // of the rank
  int microbatch = 0;
  bool operator==(const PassPart&) const = default;
};

struct Pass {
  PassKind kind = PassKind::kForward;
  PassPart part = {};
  PassPart backward = {};  // of a pair, whose `part` is the forward pass
  bool last = false;       // the gradients of the weights of its (backward) chunk are complete with it
  HeldWeights weights = {};         // of its chunk, of a pair of its forward pass's
  HeldWeights backward_weights = {};  // of a pair: of its backward pass's

  bool runs_forward() const { return kind == PassKind::kForward || kind == PassKind::kPair; }
  // Gradients of inputs, of weights.
  bool runs_backward() const {
    return kind == PassKind::kBackward || kind == PassKind::kBackwardInput || kind == PassKind::kPair;
  }
  bool writes_weights() const {
    return kind == PassKind::kBackward || kind == PassKind::kBackwardWeight || kind == PassKind::kPair;
  }
  const PassPart& backward_part() const { return kind == PassKind::kPair ? backward : part; }
  bool operator==(const Pass&) const = default;
};

// Where the stages of a model stand: rank r of `ranks` holds the stages stage_of(r, 0 .. chunks - 1).
class StagePlacement {
 public:
  StagePlacement(PipelineKind kind, int ranks, int virtual_stages);
  explicit StagePlacement(const TrainingPlan& plan) : StagePlacement(plan.schedule, plan.pp, plan.chunks) {}

  int ranks() const { return ranks_; }
  int chunks() const { return chunks_; }  // of a rank
  int stages() const { return both_ways() ? ranks_ : ranks_ * chunks_; }
  int stage_of(int rank, int chunk) const;
  // The pipeline runs from both ends: rank r holds stages r and ranks - 1 - r, and microbatches of the second
  // half of a step pass through the second ones.
  bool both_ways() const;
  int copies() const { return both_ways() ? 2 : 1; }  // of a stage's parameters, on as many ranks
  // Whether the first and the last stage stand on two ranks that share no parameters otherwise.
  bool ends_apart() const { return !both_ways() && rank_of(stages() - 1, chunks_ - 1) != 0; }
  // Where the stage after, or before, that of a chunk stands: kNone on the same rank.
  GroupRole next(int rank, int chunk) const;
  GroupRole previous(int rank, int chunk) const;

 private:
  int rank_of(int stage, int chunk) const;  // at a chunk whose stages go the same way
  GroupRole way_to(int rank, int stage, int chunk) const;

  PipelineKind kind_;
  int ranks_, chunks_;
};

// What a pipeline's order of passes is made from.
struct PipelineSpec {
  PipelineKind kind = PipelineKind::k1F1B;
  int ranks = 1;
  int chunks = 1;  // of a rank
  int microbatches = 1;
  bool pairs =
      false;  // 1F1B and interleaved: their steady state runs forward and backward passes side by side
  std::vector<StageSeconds> seconds = {};  // ZB-V: by stage of the model; empty: all alike
  // Of sharded weights, what forward passes leave, and reverse passes before their chunk's last one.
  WeightsStand after_forward = WeightsStand::kCut, after_backward = WeightsStand::kCut;
};
PipelineSpec pipeline_spec(const TrainingPlan& plan, int microbatches);
bool depends_on_times(PipelineKind kind);  // the order of its passes, on PipelineSpec::seconds

// The passes of each pipeline rank in one step, the optimizer last. Weights that passes leave gathered are
// found so by the next pass of their chunk, whatever its microbatch: one copy of them stands on a rank.
std::vector<std::vector<Pass>> pipeline_passes(const PipelineSpec& spec);

// The turns in which passes are issued: each rank issues at most its next pass a turn, once everything that
// the pass needs has been issued in this turn or an earlier one, so that whoever executes them in this order,
// as far ahead as he likes, never waits for a pass that has not been issued. turns[i]: ascending ranks.
// CHECKs that there is such an order.
std::vector<std::vector<int>> issue_turns(const std::vector<std::vector<Pass>>& passes,
                                          const StagePlacement& placement);

// The same passes one by one, each after those that it needs.
struct RankPass {
  int rank = 0;
  Pass pass;
};
std::vector<RankPass> run_order(const std::vector<std::vector<Pass>>& passes,
                                const StagePlacement& placement);

// A chunk that reads tokens or labels (of the first and of the last stage) loads each microbatch before its
// forward pass: `ahead` of them before the first one, then one after each forward pass. With ahead - 1
// microbatches read while another one is in use, and all buffers full, loading waits.
std::vector<Pass> with_loads(const std::vector<Pass>& passes, int rank, const StagePlacement& placement,
                             int ahead);

// Scoring: the forward passes of `passes` alone, in their order.
std::vector<std::vector<Pass>> forward_passes(const std::vector<std::vector<Pass>>& passes);

}  // namespace moebius
