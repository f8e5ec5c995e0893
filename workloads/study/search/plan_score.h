// How good a training plan is for a goal, from what its step takes; lower is better.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/perform/perform.h"
#include "workloads/study/search/search_result.h"

namespace moebius {

class PlanScore {
 public:
  // input_error when the goal needs a price or a power that the catalog does not know for a chip of
  // the cluster, or counts the tokens of a step that has more phases than training.
  // `data`: of cost sources, as the executors'.
  PlanScore(SearchGoal goal, const Scenario& scenario, const std::string& data = {});

  // The least of a plan whose step takes so long at least, and whose ranks compute for `busy` seconds of it,
  // mean over ranks. Dollars and joules are those of step_price.h.
  double least(double seconds, double busy, const TrainingPlan& plan) const;
  // The goal's figure of a score.
  double value(double score) const;

  PlanFigures figures(const Report& report) const;

 private:
  double of(double seconds, const Report& report) const;

  SearchGoal goal_;
  double tokens_ = 0;       // of a step
  const Cluster* cluster_;  // the scenario's, which outlives this
  IdleWatts idle_watts_;
  double work_joules_ = 0;  // of a step at least, on devices of which it is known
};

}  // namespace moebius
