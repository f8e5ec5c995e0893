#include "workloads/training/state/stretches_of.h"

namespace moebius {

LayerGroups::LayerGroups(const TrainingPlan& plan, const Fragment& fragment) : layers_(plan.group_layers) {
  for (const Op& op : fragment.ops) {
    if (op.layer >= 0 && (first_ < 0 || op.layer < first_)) first_ = op.layer;
  }
}

LayerGroups::LayerGroups(const TrainingPlan& plan, const std::vector<StageParameter>& parameters)
    : layers_(plan.group_layers) {
  for (const StageParameter& of : parameters) {
    const int layer = of.weight.layer;
    if (layer >= 0 && (first_ < 0 || layer < first_)) first_ = layer;
  }
}

bool are_two_vocabularies(Role a, Role b) {
  return (a == Role::kEmbedding && b == Role::kHead) || (a == Role::kHead && b == Role::kEmbedding);
}

namespace {

constexpr int kNoUpdate = -2;  // of any layer

}  // namespace

std::vector<int> stretches_of(const TrainingPlan& plan, const Fragment& fragment) {
  const LayerGroups groups(plan, fragment);
  std::vector<int> stretch;
  int current = 0, group = -1, updated = kNoUpdate;
  Role last = Role::kDense;  // that was updated
  for (std::size_t i = 0; i < fragment.ops.size(); ++i) {
    const Op& op = fragment.ops[i];
    const int of_op = groups.of(op);
    const bool update = fragment.phase == Phase::kOptimizer && op.kind == OpKind::kAdam;
    const bool other = fragment.phase != Phase::kOptimizer && of_op != group;
    // What a group of layers has in buckets of several ranks comes, and goes, together.
    const int layer = update ? fragment.tensors[fragment.input(op, 0)].layer : updated;
    const Role role = update ? fragment.tensors[fragment.output(op, op.num_outputs - 1)].role : last;
    const bool apart = layer != updated || are_two_vocabularies(last, role);
    const bool next = update && (apart || !plan.offload.of_update());
    if (i > 0 && (next || other)) ++current;
    updated = layer;
    last = role;
    group = of_op;
    stretch.push_back(current);
  }
  return stretch;
}

}  // namespace moebius
