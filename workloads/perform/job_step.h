// What one step of a training job takes that was performed by itself: of reinforcement learning all its
// phases, one after the other.
#pragma once

#include "workloads/report/report.h"

namespace moebius {

struct JobStep {
  double seconds = 0;
  double tokens = 0;
  double updates = 1;    // steps of training in it
  double computing = 0;  // seconds in which clocks count: of training its compute, and scoring
};
JobStep job_step(const Report& report);

}  // namespace moebius
