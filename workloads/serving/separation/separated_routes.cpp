#include "workloads/serving/separation/separated_routes.h"

#include <algorithm>

#include "workloads/routing/drawn_routes.h"

namespace moebius {

SeparatedRoutes::SeparatedRoutes(const ServingJob& job)
    : job_(job),
      course_(job.workload.popularity, job.workload.seed, job.model.experts.routed,
              job.model.experts.active) {}

void SeparatedRoutes::begin(const std::vector<std::vector<BatchPtr>>& batches) {
  batches_ = batches;
  drawn_.clear();
  runs_.clear();
  most_.clear();
  for (int j = 0; j < static_cast<int>(batches.front().size()); ++j) {
    runs_.push_back(runs_of(j));
    std::int64_t most = 0;
    for (const std::vector<BatchPtr>& of_replica : batches) most = std::max(most, of_replica[j]->rows());
    most_.push_back(static_cast<int>(most));
  }
}

// Balanced routes do not see whose tokens they are: counts alone, so that equal microbatches share a route.
TokenRuns SeparatedRoutes::runs_of(int microbatch) const {
  const bool balanced = job_.workload.popularity.kind == PopularityKind::kBalanced;
  std::vector<TokenRun> runs;
  for (int replica = 0; replica < static_cast<int>(batches_.size()); ++replica) {
    const Batch& batch = *batches_[replica][microbatch];
    if (balanced) {
      runs.push_back({replica, 0, 0, static_cast<std::int32_t>(batch.rows())});
      continue;
    }
    for (const BatchSequence& s : batch.sequences) runs.push_back({replica, s.request, s.past, s.count});
  }
  return TokenRuns(std::move(runs));
}

RouteSpec SeparatedRoutes::spec_of(int layer, int microbatch) {
  const Experts& experts = job_.model.experts;
  return {.seed = job_.workload.seed,
          .layer = layer,
          .popularity = job_.workload.popularity,
          .weights = course_.at(layer, 0),
          .ranks = job_.plan.ranks(),
          .ranks_per_node = job_.ranks_per_node,
          .experts = experts.routed,
          .active = experts.active,
          .groups = experts.groups,
          .active_groups = experts.active_groups,
          .tokens = most_[microbatch],
          .runs = runs_[microbatch],
          .without_experts = job_.plan.dp,
          .holders_per_node = job_.plan.apart.ranks_per_node};
}

RoutePtr SeparatedRoutes::get(int layer, int microbatch) {
  RouteSpec spec = spec_of(layer, microbatch);
  if (!job_.model.is_moe_layer(layer)) {
    spec.popularity = {};
    spec.experts = job_.plan.apart.ranks;
    spec.active = spec.groups = spec.active_groups = 1;
    spec.weights = {};
    return dense_.get(spec);
  }
  if (spec.popularity.kind == PopularityKind::kBalanced) return balanced_.get(spec);
  RoutePtr& drawn = drawn_[{layer, microbatch}];
  if (!drawn) drawn = drawn_route(spec);
  return drawn;
}

}  // namespace moebius
