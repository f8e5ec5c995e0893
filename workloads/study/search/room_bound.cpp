#include "workloads/study/search/room_bound.h"

#include <algorithm>

#include "workloads/study/search/held_bound.h"
#include "workloads/training/state/away_state.h"

namespace moebius {
namespace {

using Layer = RoomBound::Layer;

Layer layer_of(const ChunkFacts& facts) {
  return {facts.dense, facts.experts, facts.kept, facts.left};
}

ChunkFacts::Held beyond(const ChunkFacts::Held& whole, const ChunkFacts::Held& part) {
  return {std::max(0.0, whole.weights - part.weights), std::max(0.0, whole.gradients - part.gradients),
          std::max(0.0, whole.states - part.states)};
}

// What one has that the other has not.
Layer beyond(const Layer& whole, const Layer& part) {
  return {beyond(whole.dense, part.dense), beyond(whole.experts, part.experts),
          std::max(0.0, whole.kept - part.kept), std::max(0.0, whole.left - part.left)};
}

void add(const ChunkFacts::Held& other, ChunkFacts::Held& to) {
  to.weights += other.weights;
  to.gradients += other.gradients;
  to.states += other.states;
}

void add(const Layer& other, Layer& to) {
  add(other.dense, to.dense);
  add(other.experts, to.experts);
  to.kept += other.kept;
  to.left += other.left;
}

// The first of two layers of a kind side by side; -1: there are none.
int first_two(const Model& model, bool moe) {
  for (int layer = 0; layer + 1 < model.layers; ++layer) {
    if (model.is_moe_layer(layer) == moe && model.is_moe_layer(layer + 1) == moe) return layer;
  }
  return -1;
}

void count(const Pass& pass, UnderWay& now) {
  if (pass.kind == PassKind::kOptimizer || pass.kind == PassKind::kLoad) return;
  if (pass.runs_forward()) ++now.whole[pass.part.chunk];
  if (pass.runs_backward()) --now.whole[pass.backward_part().chunk];
  if (pass.kind == PassKind::kBackwardInput) ++now.left[pass.part.chunk];
  if (pass.kind == PassKind::kBackwardWeight) --now.left[pass.part.chunk];
}

// For the choice of a moment: any will do.
double fullness(const UnderWay& now) {
  double full = 0;
  for (std::size_t i = 0; i < now.whole.size(); ++i) full += now.whole[i] + 0.25 * now.left[i];
  return full;
}

UnderWay fullest(const std::vector<Pass>& passes, int chunks) {
  UnderWay now{std::vector<int>(chunks, 0), std::vector<int>(chunks, 0)}, most = now;
  for (const Pass& pass : passes) {
    count(pass, now);
    if (fullness(now) > fullness(most)) most = now;
  }
  return most;
}

}  // namespace

std::vector<UnderWay> under_way(PipelineSpec spec) {
  constexpr int kRounds = 4;  // of microbatches for each rank: then the schedule repeats itself
  if (spec.kind != PipelineKind::kGpipe)
    spec.microbatches = std::min(spec.microbatches, kRounds * spec.ranks);
  // Whatever the order, every microbatch is at some time kept by all chunks of a rank.
  if (depends_on_times(spec.kind))
    return {static_cast<std::size_t>(spec.ranks),
            {std::vector<int>(spec.chunks, 1), std::vector<int>(spec.chunks, 0)}};
  std::vector<UnderWay> all;
  for (const std::vector<Pass>& passes : pipeline_passes(spec)) all.push_back(fullest(passes, spec.chunks));
  return all;
}

std::shared_ptr<const std::vector<UnderWay>> RoomBound::known_under_way(const PipelineSpec& spec) {
  const Schedule key{static_cast<int>(spec.kind), spec.ranks, spec.chunks, spec.microbatches, spec.pairs};
  {
    const std::lock_guard lock(mutex_);
    const auto known = under_way_.find(key);
    if (known != under_way_.end()) return known->second;
  }
  auto made = std::make_shared<const std::vector<UnderWay>>(under_way(spec));
  const std::lock_guard lock(mutex_);
  return under_way_[key] = made;
}

Layer RoomBound::one_more(const TrainingPlan& plan, const TrainingWorkload& workload, bool moe) {
  const int first = first_two(scenario_.model, moe);
  if (first < 0) return {};
  const auto held = [&](int layers) {
    return layer_of(*probes_.part(plan, workload, {first, layers, false, false}, Costing::kAllCores, true));
  };
  return beyond(held(2), held(1));
}

// Whether a reverse pass is whole or in two parts decides what it leaves.
RoomBound::Parts RoomBound::parts_of(const TrainingPlan& given, const TrainingWorkload& workload) {
  const bool split = StagePlacement(given).both_ways() || given.schedule >= PipelineKind::kZbH1;
  TrainingPlan plan = given;
  plan.schedule = split ? PipelineKind::kZbH1 : PipelineKind::k1F1B;
  // Pairs of passes gather again for shared experts what passes with exchanges beside them keep.
  plan.overlap_dispatch_combine = given.overlap_dispatch_combine && !given.overlap_two_batch;
  plan.overlap_two_batch = false;
  plan.chunks = plan.pp = 1;
  Parts parts;
  parts.moe = one_more(plan, workload, true);
  parts.dense = one_more(plan, workload, false);
  const auto held = [&](bool embedding, bool head) {
    return layer_of(*probes_.part(plan, workload, {0, 1, embedding, head}, Costing::kAllCores, true));
  };
  const Layer beside = held(false, false);
  parts.embedding = beyond(held(true, false), beside);
  parts.head = beyond(held(false, true), beside);
  return parts;
}

std::shared_ptr<const RoomBound::Parts> RoomBound::known_parts(const TrainingPlan& plan,
                                                               const TrainingWorkload& workload,
                                                               int switches) {
  const Key key{plan.schedule >= PipelineKind::kZbH1,
                plan.tp,
                plan.dense_degree(),
                plan.expert_tp,
                plan.tp_chunks,
                plan.ep,
                plan.cp,
                plan.sequence_parallel,
                static_cast<int>(workload.micro_batch),
                switches};
  {
    const std::lock_guard lock(mutex_);
    const auto known = parts_.find(key);
    if (known != parts_.end()) return known->second;
  }
  auto made = std::make_shared<const Parts>(parts_of(plan, workload));
  const std::lock_guard lock(mutex_);
  return parts_[key] = made;
}

std::vector<Layer> RoomBound::stages(const TrainingPlan& plan, const TrainingWorkload& workload,
                                     int switches) {
  const std::shared_ptr<const Parts> parts = known_parts(plan, workload, switches);
  TrainingPlan with_away = plan;
  with_away.offload.activations = true;
  std::vector<Layer> stages;
  for (const StageSlice& slice : *probes_.slices(plan)) {
    Layer& stage = stages.emplace_back();
    const int away = layers_away(with_away, slice.num_layers);
    for (int i = 0; i < slice.num_layers; ++i) {
      const Layer& layer = scenario_.model.is_moe_layer(slice.first_layer + i) ? parts->moe : parts->dense;
      add(layer, stage);
      if (i >= away) stage.here += layer.kept;
    }
    if (slice.has_embedding) add(parts->embedding, stage);
    if (slice.has_head) add(parts->head, stage);
    if (slice.has_embedding) stage.here += parts->embedding.kept;
    if (slice.has_head) stage.here += parts->head.kept;
  }
  return stages;
}

double RoomBound::of(const std::vector<Layer>& stages, const TrainingPlan& plan,
                     const TrainingWorkload& workload) {
  const StagePlacement placement(plan);
  const auto under_way = known_under_way(pipeline_spec(plan, workload.num_microbatches(plan)));
  double fullest = 0;
  for (int rank = 0; rank < plan.pp; ++rank) {
    const UnderWay& now = (*under_way)[rank];
    double bytes = 0;
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const Layer& stage = stages[placement.stage_of(rank, chunk)];
      bytes += state_at_least(stage.dense, plan, false) + state_at_least(stage.experts, plan, true);
      bytes += plan.offload.activations ? now.whole[chunk] * stage.here
                                        : now.whole[chunk] * stage.kept + now.left[chunk] * stage.left;
    }
    fullest = std::max(fullest, bytes);
  }
  return fullest;
}

}  // namespace moebius
