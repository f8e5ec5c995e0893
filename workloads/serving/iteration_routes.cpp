#include "workloads/serving/iteration_routes.h"

#include <algorithm>

namespace moebius {

IterationRoutes::IterationRoutes(const ServingJob& job)
    : job_(job),
      course_(job.workload.popularity, job.workload.seed, job.model.experts.routed,
              job.model.experts.active) {}

void IterationRoutes::begin(const std::vector<BatchPtr>& batches) {
  batches_ = batches;
  runs_.clear();
  routes_.clear();
}

// Balanced routes do not see whose tokens they are: counts alone, so that equal iterations share a route.
TokenRuns IterationRoutes::runs_of(int group) const {
  const bool balanced = job_.workload.popularity.kind == PopularityKind::kBalanced;
  std::vector<TokenRun> runs;
  // Ranks of one replica have the same tokens: they count once.
  const int sources = job_.plan.replicated_experts() ? 1 : job_.plan.ep;
  for (int source = 0; source < sources; ++source) {
    const Batch& batch = *batches_[(group * job_.plan.ep + source) / job_.plan.tp];
    if (balanced) {
      runs.push_back({source, 0, 0, static_cast<std::int32_t>(batch.rows())});
      continue;
    }
    for (const BatchSequence& s : batch.sequences) runs.push_back({source, s.request, s.past, s.count});
  }
  return TokenRuns(std::move(runs));
}

RoutePtr IterationRoutes::get(int group, int layer) {
  const auto known = routes_.find({group, layer});
  if (known != routes_.end()) return known->second;
  auto& [runs, most] = runs_[group];
  if (runs.empty()) {
    runs = runs_of(group);
    for (int source = 0; source < job_.plan.ep; ++source) {
      const Batch& batch = *batches_[(group * job_.plan.ep + source) / job_.plan.tp];
      most = std::max(most, static_cast<int>(batch.rows()));
    }
  }
  const Experts& experts = job_.model.experts;
  const RouteSpec spec{.seed = job_.workload.seed,
                       .layer = layer,
                       .popularity = job_.workload.popularity,
                       .weights = course_.at(layer, 0),
                       .ranks = job_.plan.ep,
                       .ranks_per_node = job_.ranks_per_node,
                       .experts = experts.routed,
                       .active = experts.active,
                       .groups = experts.groups,
                       .active_groups = experts.active_groups,
                       .tokens = most,
                       .runs = runs};
  const bool balanced = spec.popularity.kind == PopularityKind::kBalanced;
  return routes_[{group, layer}] = balanced ? balanced_.get(spec) : std::make_shared<const Route>(spec);
}

}  // namespace moebius
