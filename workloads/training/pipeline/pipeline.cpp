#include "workloads/training/pipeline/pipeline.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/training/pipeline/pipeline_orders.h"

namespace moebius {
namespace {

Pass forward(int microbatch, int chunk = 0) {
  return {PassKind::kForward, {chunk, microbatch}};
}

Pass backward(int microbatch, int chunk = 0) {
  return {PassKind::kBackward, {chunk, microbatch}};
}

// All forward passes, then all backward passes.
std::vector<Pass> gpipe(int microbatches) {
  std::vector<Pass> passes;
  for (int i = 0; i < microbatches; ++i) passes.push_back(forward(i));
  for (int i = 0; i < microbatches; ++i) passes.push_back(backward(i));
  return passes;
}

// `ahead` forward passes, then a backward pass after each forward pass or, in pairs, beside it.
std::vector<Pass> alternating(const std::vector<Pass>& forwards, const std::vector<Pass>& backwards,
                              int ahead, bool pairs = false) {
  const int n = static_cast<int>(forwards.size());
  ahead = std::min(ahead, n);
  std::vector<Pass> passes(forwards.begin(), forwards.begin() + ahead);
  for (int i = ahead; i < n; ++i) {
    if (pairs) {
      passes.push_back({PassKind::kPair, forwards[i].part, backwards[i - ahead].part});
      continue;
    }
    passes.push_back(forwards[i]);
    passes.push_back(backwards[i - ahead]);
  }
  passes.insert(passes.end(), backwards.end() - ahead, backwards.end());
  return passes;
}

// Narayanan et al., SC'21, section 2.2: a rank runs ahead by as many forward passes as ranks follow it, then
// alternates, so that at most (ranks - rank) microbatches are alive. For pairs, where a pass goes one rank on
// in the time of a forward and a backward pass, it runs ahead by twice as many and one, since the halves of a
// pair are of two microbatches.
std::vector<Pass> one_forward_one_backward(const PipelineSpec& spec, int rank) {
  std::vector<Pass> forwards, backwards;
  for (int i = 0; i < spec.microbatches; ++i) {
    forwards.push_back(forward(i));
    backwards.push_back(backward(i));
  }
  const int behind = spec.ranks - rank - 1;
  return alternating(forwards, backwards, spec.pairs ? 2 * behind + 1 : behind, spec.pairs);
}

// Narayanan et al., SC'21, section 2.3: microbatches in groups of as many as there are ranks, each group
// through all chunks of a rank before the next. Pairs need one forward pass more before the first of them,
// since the last rank's first backward pass is of the microbatch whose forward pass has just ended
// (Megatron-Core, overlap_moe_expert_parallel_comm).
std::vector<Pass> interleaved(const PipelineSpec& spec, int rank) {
  const int passes_of_group = spec.ranks * spec.chunks;
  const int n = spec.microbatches * spec.chunks;
  std::vector<Pass> forwards, backwards;
  for (int i = 0; i < n; ++i) {
    const int microbatch = i / passes_of_group * spec.ranks + i % spec.ranks;
    const int chunk = i % passes_of_group / spec.ranks;
    forwards.push_back(forward(microbatch, chunk));
    backwards.push_back(backward(microbatch, spec.chunks - 1 - chunk));
  }
  const int ahead = (spec.ranks - rank - 1) * 2 + (spec.chunks - 1) * spec.ranks + (spec.pairs ? 1 : 0);
  return alternating(forwards, backwards, spec.microbatches == spec.ranks ? n : ahead, spec.pairs);
}

std::vector<Pass> passes_of_rank(const PipelineSpec& spec, int rank) {
  switch (spec.kind) {
    case PipelineKind::kGpipe:
      return gpipe(spec.microbatches);
    case PipelineKind::k1F1B:
      return one_forward_one_backward(spec, rank);
    case PipelineKind::kInterleaved:
      return interleaved(spec, rank);
    case PipelineKind::kZbH1:
      return zero_bubble_h1(spec, rank);
    case PipelineKind::kZbV:
      break;  // all ranks at once
    case PipelineKind::kDualPipe:
    case PipelineKind::kDualPipeV:
      return dual_pipe(spec, rank);
  }
  CHECK(false, std::string("unknown pipeline schedule"));
  return {};
}

// Marks the pass after which the weights of each chunk get nothing more.
void mark_last(std::vector<Pass>& passes, int chunks) {
  std::vector<bool> seen(chunks, false);
  for (auto pass = passes.rbegin(); pass != passes.rend(); ++pass) {
    if (!pass->writes_weights() || seen[pass->backward_part().chunk]) continue;
    seen[pass->backward_part().chunk] = true;
    pass->last = true;
  }
}

// Of each chunk, pass by pass. The weights' part of a reverse pass that was cut in two uses few of them: what
// it finds whole it uses, and leaves all as they stand.
void mark_weights(const PipelineSpec& spec, std::vector<Pass>& passes) {
  const auto reverses = [](const Pass& pass) { return pass.runs_backward(); };
  std::vector<WeightsStand> now(spec.chunks, WeightsStand::kCut);
  std::vector<int> left(spec.chunks, 0);  // reverse passes
  for (const Pass& pass : passes) left[pass.backward_part().chunk] += reverses(pass) ? 1 : 0;
  const auto next = [](WeightsStand& stand, WeightsStand after) {
    const HeldWeights held{stand, after};
    stand = after;
    return held;
  };
  for (Pass& pass : passes) {
    if (pass.runs_forward()) pass.weights = next(now[pass.part.chunk], spec.after_forward);
    const int chunk = pass.backward_part().chunk;
    if (reverses(pass)) {
      const bool last = --left[chunk] == 0;
      HeldWeights& held = pass.kind == PassKind::kPair ? pass.backward_weights : pass.weights;
      held = next(now[chunk], last ? WeightsStand::kCut : spec.after_backward);
    }
    if (pass.kind == PassKind::kBackwardWeight && now[chunk] == WeightsStand::kWhole)
      pass.weights = {now[chunk], now[chunk]};
  }
}

}  // namespace

StagePlacement::StagePlacement(PipelineKind kind, int ranks, int virtual_stages)
    : kind_(kind), ranks_(ranks), chunks_(1) {
  switch (kind) {
    case PipelineKind::kGpipe:
    case PipelineKind::k1F1B:
    case PipelineKind::kZbH1:
      break;
    case PipelineKind::kInterleaved:
      chunks_ = virtual_stages;
      break;
    case PipelineKind::kZbV:
    case PipelineKind::kDualPipe:
    case PipelineKind::kDualPipeV:
      chunks_ = 2;
      break;
  }
}

bool StagePlacement::both_ways() const {
  return kind_ == PipelineKind::kDualPipe;
}

int StagePlacement::stage_of(int rank, int chunk) const {
  if (both_ways()) return chunk == 0 ? rank : ranks_ - 1 - rank;
  const bool turns = kind_ == PipelineKind::kZbV || kind_ == PipelineKind::kDualPipeV;
  if (turns) return chunk == 0 ? rank : 2 * ranks_ - 1 - rank;
  return chunk * ranks_ + rank;
}

int StagePlacement::rank_of(int stage, int chunk) const {
  if (both_ways()) return chunk == 0 ? stage : ranks_ - 1 - stage;
  const bool turns = kind_ == PipelineKind::kZbV || kind_ == PipelineKind::kDualPipeV;
  return turns && stage >= ranks_ ? 2 * ranks_ - 1 - stage : stage % ranks_;
}

GroupRole StagePlacement::way_to(int rank, int stage, int chunk) const {
  if (stage < 0 || stage >= stages()) return GroupRole::kNone;
  const int to = rank_of(stage, chunk);
  if (to == rank) return GroupRole::kNone;
  // From the last rank on to the first one of the next round, not back over all of them.
  const bool round = kind_ == PipelineKind::kInterleaved;
  const bool up = round ? stage > stage_of(rank, chunk) : to > rank;
  return up ? GroupRole::kNext : GroupRole::kPrevious;
}

GroupRole StagePlacement::next(int rank, int chunk) const {
  return way_to(rank, stage_of(rank, chunk) + 1, chunk);
}

GroupRole StagePlacement::previous(int rank, int chunk) const {
  return way_to(rank, stage_of(rank, chunk) - 1, chunk);
}

bool depends_on_times(PipelineKind kind) {
  return kind == PipelineKind::kZbV;
}

PipelineSpec pipeline_spec(const TrainingPlan& plan, int microbatches) {
  const StagePlacement placement(plan);
  PipelineSpec spec{plan.schedule,          plan.pp,           placement.chunks(), microbatches,
                    plan.overlap_two_batch, plan.stage_seconds};
  if (!plan.keeps_gathered()) return spec;
  spec.after_forward = plan.regather == 1 ? WeightsStand::kWhole : WeightsStand::kPart;
  if (!plan.free_after_backward) spec.after_backward = WeightsStand::kWhole;
  return spec;
}

std::vector<std::vector<Pass>> pipeline_passes(const PipelineSpec& spec) {
  std::vector<std::vector<Pass>> all;
  if (depends_on_times(spec.kind)) all = zero_bubble_v(spec);
  for (int rank = static_cast<int>(all.size()); rank < spec.ranks; ++rank)
    all.push_back(passes_of_rank(spec, rank));
  for (std::vector<Pass>& passes : all) {
    mark_last(passes, spec.chunks);
    if (spec.after_forward != WeightsStand::kCut) mark_weights(spec, passes);
    passes.push_back({PassKind::kOptimizer, {0, spec.microbatches - 1}});
  }
  return all;
}

namespace {

// The microbatches that a chunk's forward passes take, in their order.
std::vector<int> forward_order(const std::vector<Pass>& passes, int chunk) {
  std::vector<int> order;
  for (const Pass& pass : passes) {
    if (pass.runs_forward() && pass.part.chunk == chunk) order.push_back(pass.part.microbatch);
  }
  return order;
}

}  // namespace

std::vector<Pass> with_loads(const std::vector<Pass>& passes, int rank, const StagePlacement& placement,
                             int ahead) {
  std::vector<std::vector<int>> order(placement.chunks());
  std::vector<std::size_t> next(placement.chunks(), 0);
  std::vector<Pass> all;
  const auto load = [&](int chunk) {
    if (next[chunk] < order[chunk].size())
      all.push_back({PassKind::kLoad, {chunk, order[chunk][next[chunk]++]}});
  };
  for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
    const int stage = placement.stage_of(rank, chunk);
    if (stage == 0 || stage + 1 == placement.stages()) order[chunk] = forward_order(passes, chunk);
    for (int i = 0; i < ahead; ++i) load(chunk);
  }
  for (const Pass& pass : passes) {
    all.push_back(pass);
    if (pass.runs_forward()) load(pass.part.chunk);
  }
  return all;
}

std::vector<std::vector<Pass>> forward_passes(const std::vector<std::vector<Pass>>& passes) {
  std::vector<std::vector<Pass>> forward(passes.size());
  for (std::size_t rank = 0; rank < passes.size(); ++rank) {
    for (const Pass& pass : passes[rank])
      if (pass.runs_forward()) forward[rank].push_back({.kind = PassKind::kForward, .part = pass.part});
  }
  return forward;
}

}  // namespace moebius
