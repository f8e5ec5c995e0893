// What iterations of a service of one pool take, timed one by one.
#pragma once

#include "tests/laws/simulator.h"
#include "workloads/service/timed_pool.h"

namespace moebius {

class TimedIterations {
 public:
  explicit TimedIterations(const Scenario& scenario)
      : pool_(service_pool(scenario, scenario.service.phases.front())),
        timed_(pool_, scenario.served.popularity, simulator(NetworkDetail::kFluid), &timings_) {}

  double seconds(const StepPoint& point) { return timed_.surface().at(point); }

 private:
  ServicePool pool_;
  StepTimings timings_;
  TimedPool timed_;
};

}  // namespace moebius
