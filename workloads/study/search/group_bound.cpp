#include "workloads/study/search/group_bound.h"

#include <algorithm>

namespace moebius {
namespace {

bool runs_pairs(const TrainingPlan& plan) {
  return plan.overlap_two_batch || plan.schedule == PipelineKind::kDualPipe ||
         plan.schedule == PipelineKind::kDualPipeV;
}

bool whole_reverse(PipelineKind kind) {
  return kind == PipelineKind::kGpipe || kind == PipelineKind::k1F1B || kind == PipelineKind::kInterleaved;
}

// The span of a pass alone, from the lane's begin to its end.
double span(const PassMap& map) {
  return std::max(0.0, map.way[PassMap::kLane][PassMap::kLaneEnd]);
}

// A layer of each kind: where it first stands.
int first_of(const Model& model, bool moe) {
  for (int layer = 0; layer < model.layers; ++layer) {
    if (model.is_moe_layer(layer) == moe) return layer;
  }
  return -1;
}

}  // namespace

GroupBound::Layer GroupBound::beyond(const Layer& whole, const Layer& part) {
  Layer rest;
  rest.forward = std::max(0.0, whole.forward - part.forward);
  rest.backward = std::max(0.0, whole.backward - part.backward);
  for (int lane = 0; lane < kNumLanes; ++lane)
    rest.lanes[lane] = std::max(0.0, whole.lanes[lane] - part.lanes[lane]);
  return rest;
}

// A reverse pass in two parts does the work of a whole one, which is what is lowered.
GroupBound::Layer GroupBound::layer_of(const TrainingPlan& plan, const TrainingWorkload& workload,
                                       const StageSlice& slice, Costing costing) {
  const std::shared_ptr<const ChunkFacts> facts = probes_.part(plan, workload, slice, costing);
  Layer layer;
  layer.forward = span(facts->forward);
  layer.backward = span(facts->backward);
  for (int lane = 0; lane < kNumLanes; ++lane)
    layer.lanes[lane] = facts->forward.lanes[lane] + facts->backward.lanes[lane];
  return layer;
}

GroupBound::Parts GroupBound::parts_of(const TrainingPlan& given, const TrainingWorkload& workload,
                                       bool coarse) {
  const Model& model = scenario_.model;
  TrainingPlan plan = given;
  plan.schedule = PipelineKind::k1F1B;
  plan.overlap_two_batch = false;
  plan.chunks = plan.pp = 1;
  Parts parts;
  const int dense = first_of(model, false), moe = first_of(model, true);
  if (moe >= 0 && !coarse) parts.moe = layer_of(plan, workload, {moe, 1, false, false});
  // What has no experts does not know how they are spread.
  plan.ep = plan.expert_tp = 1;
  plan.nodes_per_token = 0;
  if (moe >= 0 && coarse)
    parts.moe = layer_of(plan, workload, {moe, 1, false, false}, Costing::kExpertsAtPeak);
  const int other = dense >= 0 ? dense : moe;
  const Layer beside = layer_of(plan, workload, {other, 1, false, false});
  if (dense >= 0) parts.dense = beside;
  parts.embedding = beyond(layer_of(plan, workload, {other, 1, true, false}), beside);
  parts.head = beyond(layer_of(plan, workload, {other, 1, false, true}), beside);
  return parts;
}

std::shared_ptr<const GroupBound::Parts> GroupBound::known_parts(const TrainingPlan& plan,
                                                                 const TrainingWorkload& workload,
                                                                 int switches, bool coarse) {
  const Key key{coarse,
                plan.tp,
                plan.dense_degree(),
                coarse ? 1 : plan.expert_tp,
                plan.tp_chunks,
                coarse ? 1 : plan.ep,
                plan.cp,
                plan.zero > 0 ? plan.dp : 0,
                static_cast<int>(workload.micro_batch),
                coarse ? 0 : plan.nodes_per_token,
                switches};
  {
    const std::lock_guard lock(mutex_);
    const auto known = parts_.find(key);
    if (known != parts_.end()) return known->second;
  }
  auto made = std::make_shared<const Parts>(parts_of(plan, workload, coarse));
  const std::lock_guard lock(mutex_);
  return parts_[key] = made;
}

std::vector<GroupBound::Layer> GroupBound::stages_of(const TrainingPlan& plan, const Parts& parts) {
  std::vector<Layer> stages;
  for (const StageSlice& slice : *probes_.slices(plan)) {
    Layer& stage = stages.emplace_back();
    for (int i = 0; i < slice.num_layers; ++i)
      stage.add(scenario_.model.is_moe_layer(slice.first_layer + i) ? parts.moe : parts.dense);
    if (slice.has_embedding) stage.add(parts.embedding);
    if (slice.has_head) stage.add(parts.head);
  }
  return stages;
}

GroupBound::Least GroupBound::of(const TrainingPlan& plan, const TrainingWorkload& workload, int switches,
                                 bool coarse) {
  const std::vector<Layer> stages = stages_of(plan, *known_parts(plan, workload, switches, coarse));
  const double microbatches = workload.num_microbatches(plan);
  double busy = 0;
  for (const Layer& stage : stages) busy += stage.lanes[static_cast<int>(Lane::kCompute)];
  return {seconds(plan, stages, microbatches), microbatches * busy / plan.pp};
}

double GroupBound::seconds(const TrainingPlan& plan, const std::vector<Layer>& stages, double microbatches) {
  const StagePlacement placement(plan);
  const bool whole = whole_reverse(plan.schedule), pairs = runs_pairs(plan);
  std::vector<double> forward{0}, backward{0};  // of the stages before
  for (const Layer& stage : stages) {
    forward.push_back(forward.back() + stage.forward);
    backward.push_back(backward.back() + stage.backward);
  }
  double longest = 0;
  for (int rank = 0; rank < plan.pp; ++rank) {
    Layer all;
    double before = forward.back(), after = backward.back();
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const int stage = placement.stage_of(rank, chunk);
      all.add(stages[stage], placement.both_ways() ? 0.5 : 1);  // half of the microbatches each way
      before = std::min(before, forward[stage]);
      after = std::min(after, backward[stage]);
    }
    const double busiest = *std::max_element(all.lanes.begin(), all.lanes.end());
    const double each = whole && !pairs ? std::max(busiest, all.forward + all.backward) : busiest;
    longest = std::max(longest, microbatches * each + before + (whole && !pairs ? after : 0));
  }
  return longest;
}

}  // namespace moebius
