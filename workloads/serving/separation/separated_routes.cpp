#include "workloads/serving/separation/separated_routes.h"

#include <algorithm>
#include <utility>

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
    int most = 0;
    for (const std::vector<BatchPtr>& of_replica : batches) most = std::max(most, rows_of(*of_replica[j]));
    most_.push_back(most);
  }
}

std::int32_t SeparatedRoutes::rows_of(const Batch& batch) const {
  return balanced() ? choosing_rows(batch) : static_cast<std::int32_t>(batch.rows());
}

// Balanced routes do not see whose tokens they are: counts alone, so that equal microbatches share a route.
TokenRuns SeparatedRoutes::runs_of(int microbatch) const {
  std::vector<TokenRun> runs;
  for (int replica = 0; replica < static_cast<int>(batches_.size()); ++replica) {
    const Batch& batch = *batches_[replica][microbatch];
    if (balanced()) {
      runs.push_back({replica, 0, 0, rows_of(batch)});
      continue;
    }
    for (const BatchSequence& s : batch.sequences) runs.push_back({replica, s.request, s.past, s.count});
  }
  return TokenRuns(std::move(runs));
}

RouteSpec SeparatedRoutes::spec_of(int layer, int microbatch) {
  const Experts& experts = job_.model.experts;
  const int slots = job_.plan.slots_of(experts);
  const bool grouped = slots % experts.groups == 0;
  return {.seed = job_.workload.seed,
          .layer = layer,
          .popularity = job_.workload.popularity,
          .weights = course_.at(layer, 0),
          .ranks = job_.plan.ranks(),
          .ranks_per_node = job_.ranks_per_node,
          .experts = slots,
          .active = experts.active,
          .groups = grouped ? experts.groups : 1,
          .active_groups = grouped ? experts.active_groups : 1,
          .tokens = most_[microbatch],
          .runs = runs_[microbatch],
          .without_experts = job_.plan.dp,
          .holders_per_node = job_.plan.apart.ranks_per_node};
}

// Tokens draw slots by the loads that these have.
RoutePtr SeparatedRoutes::drawn(int layer, int microbatch) {
  const int draw = loads_->draws > 0 ? layer % loads_->draws : layer;
  RoutePtr& route = drawn_[{draw, microbatch}];
  if (route) return route;
  RouteSpec spec = spec_of(draw, microbatch);
  spec.popularity = {};
  spec.popularity.kind = PopularityKind::kDirichlet;
  spec.weights = loads_->weights[loads_->weights.size() > 1 ? draw : 0];
  spec.groups = loads_->groups;
  spec.active_groups = loads_->active_groups;
  std::vector<TokenRun> runs;
  for (int replica = 0; replica < static_cast<int>(batches_.size()); ++replica)
    runs.push_back({replica, replica, 0, rows_of(*batches_[replica][microbatch])});
  spec.runs = TokenRuns(std::move(runs));
  return route = loads_->known ? loads_->known->get(spec) : drawn_route(spec);
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
  if (loads_ != nullptr && !loads_->weights.empty()) return drawn(layer, microbatch);
  if (loads_ != nullptr) {
    spec.groups = loads_->groups;
    spec.active_groups = loads_->active_groups;
  }
  if (balanced()) {
    vary_by_layer(spec);
    return balanced_.get(spec);
  }
  RoutePtr& route = drawn_[{layer, microbatch}];
  if (!route) route = drawn_route(spec);
  return route;
}

}  // namespace moebius
