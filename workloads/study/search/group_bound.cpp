#include "workloads/study/search/group_bound.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "workloads/study/search/lone_stage.h"
#include "workloads/training/state/away_state.h"

namespace moebius {
namespace {

// Where so many layers of a kind first stand side by side; -1: nowhere.
int first_run(const Model& model, bool moe, int layers) {
  int run = 0;
  for (int layer = 0; layer < model.layers; ++layer) {
    run = model.is_moe_layer(layer) == moe ? run + 1 : 0;
    if (run == layers) return layer + 1 - layers;
  }
  return -1;
}

// The first layer of a kind, and beside it the first that turns queries and keys where that one does not, or
// the other way about.
std::vector<int> firsts(const Model& model, bool moe) {
  std::vector<int> found;
  for (int layer = 0; layer < model.layers && found.size() < 2; ++layer) {
    if (model.is_moe_layer(layer) != moe) continue;
    if (found.empty() || model.rotates(layer) != model.rotates(found.front())) found.push_back(layer);
  }
  return found;
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

// Where passes run in pairs, a reverse pass in two parts does the work of a whole one, which is what is
// lowered.
GroupBound::Layer GroupBound::layer_of(const TrainingPlan& plan, const TrainingWorkload& workload,
                                       const StageSlice& slice, Costing costing) {
  const std::shared_ptr<const ChunkFacts> facts = probes_.part(plan, workload, slice, costing, false);
  Layer layer;
  layer.forward = facts->forward.span();
  layer.backward = facts->backward.span() + facts->inputs.span() + facts->weights.span();
  for (int lane = 0; lane < kNumLanes; ++lane)
    layer.lanes[lane] = facts->forward.lanes[lane] + facts->backward.lanes[lane] + facts->inputs.lanes[lane] +
                        facts->weights.lanes[lane];
  return layer;
}

GroupBound::Layer GroupBound::least_of(const TrainingPlan& plan, const TrainingWorkload& workload, bool moe,
                                       Costing costing) {
  Layer least;
  bool first = true;
  for (const int of : firsts(scenario_.model, moe)) {
    const Layer layer = layer_of(plan, workload, {of, 1, false, false}, costing);
    if (std::exchange(first, false)) {
      least = layer;
      continue;
    }
    least.forward = std::min(least.forward, layer.forward);
    least.backward = std::min(least.backward, layer.backward);
    for (int lane = 0; lane < kNumLanes; ++lane)
      least.lanes[lane] = std::min(least.lanes[lane], layer.lanes[lane]);
  }
  return least;
}

// Of a layer in a group that is not the last of its stage: with one such group, or what a second one adds,
// whichever is less; 0 where no layers of the kind stand side by side.
double GroupBound::copies_of(const TrainingPlan& plan, const TrainingWorkload& workload, bool moe) {
  const int group = plan.group_layers, first = first_run(scenario_.model, moe, 2 * group + 1);
  if (first < 0) return 0;
  const auto busy = [&](int layers) {
    return layer_of(plan, workload, {first, layers, false, false}).lanes[static_cast<int>(Lane::kHostCopy)];
  };
  const double one = busy(group + 1), two = busy(2 * group + 1);
  return std::max(0.0, std::min(one, two - one)) / group;
}

GroupBound::Parts GroupBound::parts_of(const TrainingPlan& given, const TrainingWorkload& workload,
                                       bool coarse) {
  const Model& model = scenario_.model;
  TrainingPlan plan = lone_stage(given);
  Parts parts;
  if (plan.offload.activations) {
    parts.moe_copies = copies_of(plan, workload, true);
    parts.dense_copies = copies_of(plan, workload, false);
    plan.offload.activations = false;
  }
  const int dense = first_run(model, false, 1), moe = first_run(model, true, 1);
  // What has no experts does not know how they are spread; the head has some where modules predict tokens
  // ahead.
  TrainingPlan alike = plan;
  alike.ep = alike.expert_tp = 1;
  alike.nodes_per_token = 0;
  const TrainingPlan& spread = coarse ? alike : plan;
  const Costing costing = coarse ? Costing::kExpertsAtPeak : Costing::kAllCores;
  parts.moe = least_of(spread, workload, true, costing);
  const int other = dense >= 0 ? dense : moe;
  const Layer beside = layer_of(alike, workload, {other, 1, false, false}, costing);
  parts.dense = least_of(alike, workload, false, costing);
  parts.embedding = beyond(layer_of(alike, workload, {other, 1, true, false}, costing), beside);
  const TrainingPlan& of_head = model.mtp_layers > 0 ? spread : alike;
  parts.head = beyond(layer_of(of_head, workload, {other, 1, false, true}, costing),
                      layer_of(of_head, workload, {other, 1, false, false}, costing));
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
                plan.offload.activations,
                split_alone(plan),
                plan.sequence_parallel,
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
    const int away = layers_away(plan, slice.num_layers);
    for (int i = 0; i < slice.num_layers; ++i) {
      const bool moe = scenario_.model.is_moe_layer(slice.first_layer + i);
      stage.add(moe ? parts.moe : parts.dense);
      if (i < away)
        stage.lanes[static_cast<int>(Lane::kHostCopy)] += moe ? parts.moe_copies : parts.dense_copies;
    }
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
  const bool whole = whole_reverse(plan.schedule) && !runs_pairs(plan), alone = whole || split_alone(plan);
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
    const double each = alone ? std::max(busiest, all.forward + all.backward) : busiest;
    longest = std::max(longest, microbatches * each + before + (whole ? after : 0));
  }
  return longest;
}

}  // namespace moebius
