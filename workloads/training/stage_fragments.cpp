#include "workloads/training/stage_fragments.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "workloads/training/backward.h"
#include "workloads/training/optimizer.h"
#include "workloads/training/packing.h"

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
  const bool packed = packs();
  const Key key{
      packed ? step : route_step, packed ? microbatch : route_microbatch, stage, shard.tensor, shard.expert,
      packed ? shard.replica : -1};
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  StageSpec spec{slices_[stage], stage, shard, route_step, route_microbatch};
  if (packed) {
    spec.packed = pack(*input_.workload, {step, microbatch * input_.plan->dp + shard.replica});
    spec.counted_tokens = counted_tokens(step);
  }
  return known_[key] = lower(spec);
}

double FragmentStore::counted_tokens(int step) {
  const auto [place, added] = counted_.try_emplace(step, 0);
  if (added) place->second = std::max(1.0, packed_tokens(*input_.workload, *input_.plan, step).counted);
  return place->second;
}

// From here on the forward fragment is frozen: the reverse passes have marked what it must keep.
StageFragments FragmentStore::lower(const StageSpec& stage) {
  ForwardPass forward = lower_forward(input_, stage, routes_);
  for (const RoutePtr& route : forward.builder.fragment().routes) loads_.add(*route);
  StageFragments fragments;
  if (input_.workload->forward_only) {
    fragments.forward = forward.builder.freeze_it();
    return fragments;
  }
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
    fragments.last_backward = last.builder.freeze_it();
  }
  fragments.forward = forward.builder.freeze_it();
  fragments.backward = backward.builder.freeze_it();
  if (!fragments.last_backward) fragments.last_backward = fragments.backward;
  fragments.optimizer = lower_optimizer(input_, stage, std::move(parameters));
  return fragments;
}

void FragmentStore::forget_before(int step, int microbatch) {
  if (fixed_routes() && !packs()) return;
  for (auto it = known_.begin(); it != known_.end();) {
    const int of_step = std::get<0>(it->first), of_microbatch = std::get<1>(it->first);
    const bool old = of_step < step || (of_microbatch >= 0 && of_step == step && of_microbatch < microbatch);
    it = old ? known_.erase(it) : std::next(it);
  }
}

}  // namespace moebius
