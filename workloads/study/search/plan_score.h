// How good a training plan is for a goal, from what its step takes; lower is better.
#pragma once

#include "workloads/perform.h"
#include "workloads/study/search/search_result.h"

namespace moebius {

class PlanScore {
 public:
  // input_error when the goal needs a price or a power that the catalog does not know.
  PlanScore(SearchGoal goal, const Scenario& scenario);

  // `busy`: seconds that a rank computes or communicates with nothing beside it, mean over ranks. Dollars are
  // those of the devices in use for the time of the step. Joules: those of devices at their TDP while busy,
  // and what their nodes take beside them all the time (fans, CPUs, NICs): an estimate.
  double of(double seconds, double busy, int ranks) const;
  // The goal's figure of a score.
  double value(double score) const;
  double usd_per_hour(int ranks) const;

  PlanFigures figures(const Report& report) const;

 private:
  SearchGoal goal_;
  double tokens_ = 0;  // of a step
  double price_ = 0;   // dollars per device and hour
  double device_w_ = 0, node_w_ = 0;
  int node_ = 1;
};

}  // namespace moebius
