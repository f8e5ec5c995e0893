// Which activations wait for the reverse pass in host memory: part of away_state.h.
#include <algorithm>

#include "workloads/training/state/away_state.h"
#include "workloads/training/state/stretches_of.h"

namespace moebius {

std::set<std::uint32_t> away_activations(const TrainingPlan& plan, const Fragment& forward) {
  std::set<std::uint32_t> keys;
  if (!plan.offload.activations) return keys;
  const LayerGroups groups(plan, forward);
  int last = -1;
  for (const Op& op : forward.ops) last = std::max(last, groups.of(op));
  for (const Op& op : forward.ops) {
    const bool early = op.layer >= 0 && groups.of(op) < last;
    for (int i = 0; early && i < op.num_outputs; ++i) {
      const Tensor& tensor = forward.tensors[forward.output(op, i)];
      if (tensor.scope == Scope::kMicrobatch) keys.insert(tensor.key);
    }
  }
  return keys;
}

int layers_away(const TrainingPlan& plan, int layers) {
  if (!plan.offload.activations) return 0;
  return std::max(0, layers - 1) / plan.group_layers * plan.group_layers;
}

}  // namespace moebius
