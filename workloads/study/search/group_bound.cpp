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

std::shared_ptr<const std::vector<StageSlice>> GroupBound::slices(const TrainingPlan& plan) {
  const int stages = StagePlacement(plan).stages();
  const std::lock_guard lock(mutex_);
  auto& known = slices_[stages];
  if (!known)
    known = std::make_shared<const std::vector<StageSlice>>(
        slices_of(scenario_.model, plan, scenario_.training.sequence_length));
  return known;
}

GroupBound::Parts GroupBound::parts_of(const TrainingPlan& plan, const TrainingWorkload& workload) {
  const Model& model = scenario_.model;
  const auto layer = [&](const StageSlice& slice) {
    const std::shared_ptr<const ChunkFacts> facts = probes_.part(plan, workload, slice);
    const bool whole = facts->backward.busy() > 0;
    Layer of;
    of.forward = span(facts->forward);
    of.backward = whole ? span(facts->backward) : span(facts->inputs) + span(facts->weights);
    for (int lane = 0; lane < kNumLanes; ++lane)
      of.lanes[lane] = facts->forward.lanes[lane] +
                       (whole ? facts->backward.lanes[lane] : facts->inputs.lanes[lane] + facts->weights.lanes[lane]);
    of.busy = of.lanes[static_cast<int>(Lane::kCompute)];
    return of;
  };
  const auto beyond = [](const Layer& whole, const Layer& part) {
    Layer rest;
    rest.forward = std::max(0.0, whole.forward - part.forward);
    rest.backward = std::max(0.0, whole.backward - part.backward);
    rest.busy = std::max(0.0, whole.busy - part.busy);
    for (int lane = 0; lane < kNumLanes; ++lane)
      rest.lanes[lane] = std::max(0.0, whole.lanes[lane] - part.lanes[lane]);
    return rest;
  };
  Parts parts;
  const int dense = first_of(model, false), moe = first_of(model, true), last = model.layers - 1;
  if (dense >= 0) parts.dense = layer({dense, 1, false, false});
  if (moe >= 0) parts.moe = layer({moe, 1, false, false});
  const auto kind = [&](int of) -> const Layer& { return model.is_moe_layer(of) ? parts.moe : parts.dense; };
  parts.embedding = beyond(layer({0, 1, true, false}), kind(0));
  parts.head = beyond(layer({last, 1, false, true}), kind(last));
  return parts;
}

std::vector<GroupBound::Layer> GroupBound::stages_of(const TrainingPlan& plan,
                                                     const TrainingWorkload& workload) {
  const Parts parts = parts_of(plan, workload);
  const auto add = [](Layer& to, const Layer& of) {
    to.forward += of.forward;
    to.backward += of.backward;
    to.busy += of.busy;
    for (int lane = 0; lane < kNumLanes; ++lane) to.lanes[lane] += of.lanes[lane];
  };
  std::vector<Layer> stages;
  for (const StageSlice& slice : *slices(plan)) {
    Layer& stage = stages.emplace_back();
    for (int i = 0; i < slice.num_layers; ++i)
      add(stage, scenario_.model.is_moe_layer(slice.first_layer + i) ? parts.moe : parts.dense);
    if (slice.has_embedding) add(stage, parts.embedding);
    if (slice.has_head) add(stage, parts.head);
  }
  return stages;
}

double GroupBound::seconds(const TrainingPlan& plan, const TrainingWorkload& workload) {
  const std::vector<Layer> stages = stages_of(plan, workload);
  const StagePlacement placement(plan);
  const double microbatches = workload.num_microbatches(plan);
  const bool pairs = runs_pairs(plan);
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
      const double share = placement.both_ways() ? 0.5 : 1;  // half of the microbatches each way
      all.forward += share * stages[stage].forward;
      all.backward += share * stages[stage].backward;
      for (int lane = 0; lane < kNumLanes; ++lane) all.lanes[lane] += share * stages[stage].lanes[lane];
      before = std::min(before, forward[stage]);
      after = std::min(after, backward[stage]);
    }
    const double each = pairs ? *std::max_element(all.lanes.begin(), all.lanes.end()) : all.forward + all.backward;
    if (!whole_reverse(plan.schedule) || pairs) after = 0;
    longest = std::max(longest, microbatches * each + before + after);
  }
  return longest;
}

double GroupBound::busy(const TrainingPlan& plan, const TrainingWorkload& workload) {
  double sum = 0;
  for (const Layer& stage : stages_of(plan, workload)) sum += stage.busy;
  return workload.num_microbatches(plan) * sum / plan.pp;
}

}  // namespace moebius
