// One course as it went: who held which cards when, what was drawn, what happened.
#pragma once

#include <vector>

#include "workloads/cluster/queue/queue_course.h"

namespace moebius {

struct PowerSample {
  Time time;
  double watts = 0;
};

struct QueueTimeline {
  std::vector<DrawnJob> jobs;
  std::vector<CardSpan> spans;     // by their ends
  std::vector<QueueEvent> events;  // by time
  std::vector<PowerSample> power;  // where it changes
};

QueueTimeline queue_timeline(const QueueInputs& inputs, std::uint64_t seed);

}  // namespace moebius
