#include "workloads/training/stage_fragments.h"

#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "workloads/training/away_state.h"
#include "workloads/training/backward.h"
#include "workloads/training/hybrid_recompute.h"
#include "workloads/training/optimizer.h"
#include "workloads/training/pipeline.h"

namespace moebius {
namespace {

std::vector<MemoryPass> memory_passes(const std::vector<Pass>& passes, const StageFragments& of) {
  std::vector<MemoryPass> all;
  for (const Pass& pass : passes) {
    switch (pass.kind) {
      case PassKind::kForward:
        all.push_back({of.forward.get(), 1});
        break;
      case PassKind::kBackward:
        all.push_back({of.backward.get(), -1});
        break;
      case PassKind::kLastBackward:
        all.push_back({of.last_backward.get(), -1});
        break;
      case PassKind::kOptimizer:
        all.push_back({of.optimizer.get(), 0});
        break;
    }
  }
  return all;
}

}  // namespace

FragmentStore::FragmentStore(const LoweringInput& input, std::vector<StageSlice> slices)
    : input_(input), slices_(std::move(slices)) {}

bool FragmentStore::fixed_routes() const {
  return input_.workload->popularity.kind == PopularityKind::kBalanced || input_.model->experts.routed == 0;
}

const StageFragments& FragmentStore::get(int stage, ShardPosition shard, int step, int microbatch) {
  const int route_step = fixed_routes() ? 0 : step;
  const int route_microbatch =
      !fixed_routes() && input_.workload->popularity.per_microbatch ? microbatch : -1;
  const Key key{route_step, route_microbatch, stage, shard.tensor, shard.expert};
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  StageSpec spec{slices_[stage], stage, shard, route_step, route_microbatch};
  spec.recompute = recompute_of(spec);
  const StageFragments& fragments = known_[key] = lower(spec);
  for (const RoutePtr& route : fragments.forward->routes) loads_.add(*route);
  return fragments;
}

std::shared_ptr<const RecomputeChoice> FragmentStore::recompute_of(StageSpec stage) {
  const TrainingPlan& plan = *input_.plan;
  if (plan.recompute != RecomputePolicy::kHybrid) return nullptr;
  const auto found = recompute_.find(stage.stage);
  if (found != recompute_.end()) return found->second;
  const std::vector<Pass> passes =
      pipeline_passes(plan.schedule, stage.stage, plan.pp, input_.workload->num_microbatches(plan));
  HybridRecompute hybrid(
      plan, [this](const StageSpec& spec) { return lower(spec); },
      [&](const StageFragments& of) { return memory_passes(passes, of); });
  return recompute_[stage.stage] = hybrid.choose(stage);
}

// From here on the forward fragment is frozen: the reverse passes have marked what it must keep.
StageFragments FragmentStore::lower(const StageSpec& stage) {
  ForwardPass forward = lower_forward(input_, stage, routes_);
  StageFragments fragments;
  const BackwardOptions reduce{
      [&](BackwardPass& pass) { write_gradient_reduction(pass.builder, input_, pass.parameters, false); }};
  // Sharded sums end with their microbatch, others with the last one.
  const bool each = input_.plan->zero >= 2;
  BackwardPass backward =
      lower_backward(input_, stage, forward, fmt::format("backward stage {}", stage.stage),
                     each ? reduce : BackwardOptions{});
  if (each) write_gradient_reduction(backward.builder, input_, backward.parameters, true);
  std::vector<StageParameter> parameters = backward.parameters;
  std::optional<BackwardPass> last;
  if (input_.plan->overlap_gradients && !each) {
    last = lower_backward(input_, stage, forward, fmt::format("last backward stage {}", stage.stage), reduce);
    write_gradient_reduction(last->builder, input_, last->parameters, true);
    parameters = last->parameters;
  }
  const std::set<std::uint32_t> away = away_activations(*input_.plan, forward.builder.fragment());
  const auto freeze = [&](FragmentBuilder& builder) {
    return freeze_with_away_state(*input_.plan, away, builder);
  };
  if (last) fragments.last_backward = freeze(last->builder);
  fragments.forward = freeze(forward.builder);
  fragments.backward = freeze(backward.builder);
  if (!fragments.last_backward) fragments.last_backward = fragments.backward;
  FragmentBuilder optimizer = lower_optimizer(input_, stage, std::move(parameters));
  fragments.optimizer = freeze(optimizer);
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
