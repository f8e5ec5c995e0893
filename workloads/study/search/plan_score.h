// How good a training plan is for a goal, from what its step takes; lower is better.
#pragma once

#include "workloads/perform/perform.h"
#include "workloads/study/search/search_result.h"

namespace moebius {

class PlanScore {
 public:
  // input_error when the goal needs a price or a power that the catalog does not know for a chip of
  // the cluster.
  PlanScore(SearchGoal goal, const Scenario& scenario);

  // `busy`: seconds that a rank computes or communicates with nothing beside it, mean over ranks. Dollars and
  // joules are those of step_price.h.
  double of(double seconds, double busy, int ranks) const;
  // The goal's figure of a score.
  double value(double score) const;

  PlanFigures figures(const Report& report) const;

 private:
  SearchGoal goal_;
  double tokens_ = 0;       // of a step
  const Cluster* cluster_;  // the scenario's, which outlives this
};

}  // namespace moebius
