#include "workloads/training/stage_fragments.h"

#include <utility>

#include <fmt/format.h>

#include "workloads/training/backward.h"
#include "workloads/training/optimizer.h"
#include "workloads/training/tensor_overlap.h"

namespace moebius {

FragmentStore::FragmentStore(const LoweringInput& input, std::vector<StageSlice> slices)
    : input_(input), slices_(std::move(slices)) {}

bool FragmentStore::fixed_routes() const {
  return input_.workload->popularity.kind == PopularityKind::kBalanced || input_.model->experts.routed == 0;
}

const StageFragments& FragmentStore::get(int stage, ShardPosition shard, int step, int microbatch) {
  const int route_step = fixed_routes() ? 0 : step;
  const int route_microbatch =
      !fixed_routes() && input_.workload->popularity.per_microbatch ? microbatch : -1;
  const Key key{route_step, route_microbatch, stage, shard.tensor, shard.expert, shard.dense};
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_[key] = lower({slices_[stage], stage, shard, route_step, route_microbatch});
}

// From here on the forward fragment is frozen: the reverse passes have marked what it must keep.
StageFragments FragmentStore::lower(const StageSpec& stage) {
  ForwardPass forward = lower_forward(input_, stage, routes_);
  for (const RoutePtr& route : forward.builder.fragment().routes) loads_.add(*route);
  StageFragments fragments;
  BackwardPass backward =
      lower_backward(input_, stage, forward, fmt::format("backward stage {}", stage.stage));
  std::vector<StageParameter> parameters = backward.parameters;
  if (input_.plan->overlap_gradients) {
    const auto reduce = [&](BackwardPass& pass) {
      write_gradient_reduction(pass.builder, input_, pass.parameters, false);
    };
    BackwardPass last =
        lower_backward(input_, stage, forward, fmt::format("last backward stage {}", stage.stage), {reduce});
    write_gradient_reduction(last.builder, input_, last.parameters, true);
    parameters = last.parameters;
    fragments.last_backward = freeze_with_overlap(last.builder, *input_.plan);
  }
  fragments.forward = freeze_with_overlap(forward.builder, *input_.plan);
  fragments.backward = freeze_with_overlap(backward.builder, *input_.plan);
  if (!fragments.last_backward) fragments.last_backward = fragments.backward;
  fragments.optimizer = lower_optimizer(input_, stage, std::move(parameters));
  return fragments;
}

void FragmentStore::forget_before(int step, int microbatch) {
  if (fixed_routes()) return;
  for (auto it = known_.begin(); it != known_.end();) {
    const int of_step = std::get<0>(it->first), of_microbatch = std::get<1>(it->first);
    const bool old = of_step < step || (of_microbatch >= 0 && of_step == step && of_microbatch < microbatch);
    it = old ? known_.erase(it) : std::next(it);
  }
}

}  // namespace moebius
