// How good a plan of a service is for a goal, from a run of it.
#pragma once

#include "workloads/perform/perform.h"
#include "workloads/study/search/search_result.h"
#include "workloads/study/search/serving_demand.h"

namespace moebius {

class ServingScore {
 public:
  // input_error for a goal that needs a price, a power or promises that are not there.
  ServingScore(SearchGoal goal, const Scenario& scenario);

  SearchGoal goal() const { return goal_; }

  // `demand`: of the requests that the run had. The value of a goal:
  //   goodput      requests a second that were given what their class is promised, over the run; of requests
  //                that come at times of their own the share of their rate decides, the score
  //   throughput   tokens generated a second
  //   tokens per   generated, of each class by the share of its requests that were given that, over the price
  //   of the devices of the plan (busy or idle), or
  //                over what they and their nodes take (an estimate: service_cost.h)
  PlanFigures figures(const Report& report, const ServingDemand& demand) const;
  // The same run, whose plan keeps what was asked for up to `rate` requests a second.
  static void set_rate(PlanFigures& figures, double rate);

  // Of a value, lower is better; infinity where it is 0.
  static double score_of(double value);

 private:
  SearchGoal goal_;
};

}  // namespace moebius
