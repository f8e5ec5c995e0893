// How much of a cluster's card time its jobs could hold at most: what is left nobody wanted, whoever
// schedules.
#pragma once

#include "workloads/cluster/queue/queue_course.h"

namespace moebius {

// Share of the card time that is not broken, for the jobs of a course on the chips that they had, if cards
// could be cut at will and all jobs were known beforehand: no quotas, no pools, no spares, no starts.
// Replicas first, whose demand is lost, whole ones, as many as were asked for each hour on those chips at
// their clocks; then those who need longest at their largest size, hour by hour, which keeps the most jobs to
// the end. A job that ended takes as much as the least efficient of its sizes would, another goes on.
double attainable_allocation(const QueueInputs& inputs, const QueueCourse& course);

}  // namespace moebius
