// The stretches of a fragment's ops, before which state is brought and after which it is put back.
#pragma once

#include <vector>

#include "workloads/schedule/fragment.h"
#include "workloads/training/layers/backward.h"
#include "workloads/training/plan.h"

namespace moebius {

// Layers are grouped from the first one of the stage on. -1: of no layer.
class LayerGroups {
 public:
  LayerGroups(const TrainingPlan& plan, const Fragment& fragment);
  // Of all stages of a rank: two ranks that hold the same ones in another order have the same groups.
  LayerGroups(const TrainingPlan& plan, const std::vector<StageParameter>& parameters);
  int of(const Op& op) const { return of_layer(op.layer); }
  int of_layer(int layer) const { return layer < 0 ? -1 : (layer - first_) / layers_; }

 private:
  int layers_, first_ = -1;
};

// The embedding and the head: each as large as several layers, so that the one moves beside the other's
// update.
bool are_two_vocabularies(Role a, Role b);

// Of each op, the stretch that it belongs to, ascending: a group of layers; in the optimizer an update, or
// those of one group of layers where they follow one another and something of theirs stands in host memory.
std::vector<int> stretches_of(const TrainingPlan& plan, const Fragment& fragment);

}  // namespace moebius
