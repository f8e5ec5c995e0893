// A mixed load, drawn: training, fine-tuning, reinforcement learning and services over weeks. Which jobs
// there are hangs on the load, the shapes and the seed alone, not on who schedules them.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/cluster/queue/queue_plan.h"

namespace moebius {

struct DrawnJob {
  int shape = 0;
  int size = 0;  // index of the size that it asks for; inference: 0
  Time arrival = {};
  Time work = {};         // run time at that size on the shape's first pool; inference: how long it stays
  Time estimate = {};     // as its user states it, at least `work`
  int replicas = 1;       // inference: at the peak
  std::uint64_t key = 0;  // of the noise of its demand
};

// In the order of arrival. Every shape has at least one job, but one
// whose share of them is 0, which asks for nothing. Lengths are lognormal within a shape; one factor
// a shape makes its card time the stated share of load.demand x the cluster's. Arrivals thin out at night and
// at weekends (time 0 is a Monday, 0 o'clock); the first load.backlog of the jobs are there at 0.
std::vector<DrawnJob> draw_load(const QueuePlan& plan, Time duration, std::uint64_t seed);

// What a service is asked for in the hour of `now`, in replicas that are busy all the time: between its night
// and its peak by a cosine of the day, with noise that hangs on the job and the hour alone; at most
// job.replicas.
double demand_of(const QueuePlan& plan, const DrawnJob& job, Time now);
// Whole ones for that, at least 1.
int wanted_replicas(const QueuePlan& plan, const DrawnJob& job, Time now);

// Card time that the jobs ask for within the duration, of a job without what lies after the end. Services: at
// their mean over the hours.
double offered_card_seconds(const QueuePlan& plan, const std::vector<DrawnJob>& jobs, Time duration);

}  // namespace moebius
