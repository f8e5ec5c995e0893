#include "workloads/study/search/plan_bounds.h"

#include <algorithm>
#include <limits>

#include "hw/mixed_pools.h"
#include "workloads/study/search/held_bound.h"
#include "workloads/study/search/probe_keys.h"

namespace moebius {
namespace {

// The plan without what only adds to a step: shards, host memory. What of it is computed stays.
TrainingPlan stripped(TrainingPlan plan) {
  plan.zero = plan.shard = 0;
  plan.offload = {};
  return plan;
}

// So, but activations that go to the host do: copies decide how long a pass of a stage takes.
TrainingPlan without_states(const TrainingPlan& plan) {
  TrainingPlan result = stripped(plan);
  result.offload.activations = plan.offload.activations;
  return result;
}

}  // namespace

PlanBounds::PlanBounds(const TrainingSpace& space, const PlanScore& score, const std::string& data,
                       const KnowTransfers& transfers)
    : space_(space),
      score_(score),
      probes_(space.scenario(), data, transfers),
      layers_(space.scenario(), probes_),
      rooms_(space.scenario(), probes_) {}

bool PlanBounds::hold() const {
  const Scenario& scenario = space_.scenario();
  const bool whole = !scenario.training.forward_only && !scenario.training.adapters.any();
  // Stages are looked at with all tokens; where experts are not asked for alike a capacity drops some.
  const bool drops = scenario.training.popularity.kind != PopularityKind::kBalanced &&
                     std::any_of(space_.bundles().begin(), space_.bundles().end(),
                                 [](const PlanBundle& bundle) { return bundle.plan.capacity > 0; });
  return whole && !drops && !scenario.training.lengths && !several_kinds(*scenario.cluster) &&
         !scenario.cluster->exchange && !scenario.cluster->variation.any() && !scenario.plan.uneven_batches();
}

// Of every kind of bundle: recomputation and exchanges in line only add to what is computed.
double PlanBounds::of_group(const PlanDegrees& degrees, bool coarse) {
  double least = std::numeric_limits<double>::infinity();
  int last = -1;
  const auto legal = space_.legal_bundles(degrees);
  for (const int bundle : *legal) {
    const int kind = space_.kinds()[bundle];
    if (kind == last) continue;
    last = kind;
    TrainingPlan plan = stripped(space_.plan_of(degrees, bundle).plan);
    plan.recompute = RecomputePolicy::kNone;
    plan.recompute_ops.clear();
    plan.overlap_dispatch_combine = true;
    least = std::min(least, closed_form(plan, degrees, -1 - kind, coarse));
  }
  return least;
}

double PlanBounds::of_variant(const PlanDegrees& degrees, int bundle) {
  TrainingPlan plan = without_states(space_.plan_of(degrees, bundle).plan);
  // What it computes again it does not keep, and it may be anything.
  if (!layers_stand_alone(plan)) plan.recompute = RecomputePolicy::kNone, plan.offload = {};
  return closed_form(plan, degrees, space_.computed()[bundle]);
}

std::vector<int> PlanBounds::with_room(const PlanDegrees& degrees, const std::vector<int>& bundles) {
  const TrainingSpace::Legal legal = space_.plan_of(degrees, bundles.front());
  if (!layers_stand_alone(legal.plan) || legal.plan.slicing == Slicing::kDynamic) return bundles;
  const std::vector<RoomBound::Layer> stages =
      rooms_.stages(stripped(legal.plan), legal.workload, space_.computed()[bundles.front()]);
  std::vector<int> fit;
  for (const int bundle : bundles) {
    TrainingPlan plan = legal.plan;
    plan.zero = space_.bundles()[bundle].plan.zero;
    plan.offload = space_.bundles()[bundle].plan.offload;
    if (rooms_.of(stages, plan, legal.workload) <= room(plan)) fit.push_back(bundle);
  }
  return fit;
}

double PlanBounds::closed_form(const TrainingPlan& plan, const PlanDegrees& degrees, int switches,
                               bool coarse) {
  TrainingWorkload workload = space_.scenario().training;
  workload.micro_batch = degrees.micro_batch;
  const GroupBound::Least least = layers_.of(plan, workload, switches, coarse);
  return score_.least(least.seconds, least.busy, plan);
}

PlanBounds::Stages PlanBounds::stages_of(const TrainingPlan& plan, const TrainingWorkload& workload,
                                         Transfers transfers) {
  Stages stages;
  if (plan.slicing == Slicing::kDynamic) return stages;
  const int microbatches = workload.num_microbatches(plan);
  const std::shared_ptr<const PassOrder> order = orders_.of(plan, microbatches);
  if (!order) return stages;
  stages.facts = probes_.facts(plan, workload, transfers);
  stages.step = step_bound(stages.facts, *order, StagePlacement(plan), microbatches);
  return stages;
}

double PlanBounds::of_rank(const PlanDegrees& degrees, int bundle) {
  const TrainingSpace::Legal legal = space_.plan_of(degrees, bundle);
  const TrainingPlan plan = without_states(legal.plan);
  const std::shared_ptr<const PassOrder> order =
      plan.slicing == Slicing::kDynamic ? nullptr : orders_.of(plan, legal.workload.num_microbatches(plan));
  if (!order) return 0;
  const int middle = plan.pp / 2;
  const PlanFacts::Rank facts =
      probes_.rank_passes(plan, legal.workload, middle, pairs_of(order->counts[middle]));
  return score_.least(rank_bound(facts, order->counts[middle]), 0, plan);
}

PlanBounds::Stages PlanBounds::of_stages(const PlanDegrees& degrees, int bundle) {
  const TrainingSpace::Legal legal = space_.plan_of(degrees, bundle);
  Stages stages = stages_of(without_states(legal.plan), legal.workload, Transfers::kBytes);
  stages.score = score_.least(stages.step.passes_s, stages.step.passes_busy, legal.plan);
  return stages;
}

double PlanBounds::room(const TrainingPlan& plan) const {
  if (!space_.scenario().enforce_memory) return std::numeric_limits<double>::infinity();
  return (space_.scenario().cluster->pools.front().accelerator.memory - plan.memory_reserve).value;
}

bool PlanBounds::too_large(const Stages& variant, const TrainingPlan& plan) const {
  return !variant.facts.ranks.empty() && layers_stand_alone(plan) &&
         held_at_least(variant.facts, variant.step, plan) > room(plan);
}

PlanBounds::Plan PlanBounds::of_plan(const PlanDegrees& degrees, int bundle) {
  const TrainingSpace::Legal legal = space_.plan_of(degrees, bundle);
  const Stages stages = stages_of(legal.plan, legal.workload, Transfers::kNetwork);
  if (stages.facts.ranks.empty()) return {};
  return {score_.least(stages.step.seconds, stages.step.busy, legal.plan),
          layers_stand_alone(legal.plan) && held(stages.facts, stages.step) > room(legal.plan)};
}

}  // namespace moebius
