#include "workloads/study/search/held_bound.h"

#include <algorithm>

#include "workloads/training/state/sharding.h"

namespace moebius {

double state_at_least(const ChunkFacts::Held& held, const TrainingPlan& plan, bool experts) {
  const double shards = std::max(1, num_replicas(plan, experts));
  const double states = plan.offload.optimizer ? 0 : held.states;
  const double weights = plan.offload.parameters ? 0 : held.weights;
  const double gradients = plan.offload.gradients ? 0 : held.gradients;
  return states / (plan.zero >= 1 ? shards : 1) + gradients / (plan.zero >= 2 ? shards : 1) +
         weights / (plan.zero >= 3 ? shards : 1);
}

double held_at_least(const PlanFacts& facts, const StepBound& step, const TrainingPlan& plan) {
  double fullest = 0;
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    double bytes = step.activations[rank];
    for (const auto& chunk : facts.ranks[rank].chunks)
      bytes += state_at_least(chunk->dense, plan, false) + state_at_least(chunk->experts, plan, true);
    fullest = std::max(fullest, bytes);
  }
  return fullest;
}

double held(const PlanFacts& facts, const StepBound& step) {
  double fullest = 0;
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    double bytes = step.activations[rank];
    for (const auto& chunk : facts.ranks[rank].chunks) bytes += chunk->state_bytes();
    fullest = std::max(fullest, bytes);
  }
  return fullest;
}

}  // namespace moebius
