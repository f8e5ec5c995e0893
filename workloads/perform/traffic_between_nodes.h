// What a job's step sends between its nodes, by pattern: of its groups those that stand on several.
#pragma once

#include <vector>

#include "workloads/cluster/queue/leaf_traffic.h"
#include "workloads/report/report.h"
#include "workloads/schedule/layout.h"

namespace moebius {

// Of a training report, a step of which comes every `step_seconds`, on nodes of one size. A group that stands
// on one node meets nobody on the way. Of reinforcement learning that of training alone: what a rollout sends
// between nodes is not in it.
std::vector<GroupTraffic> traffic_between_nodes(const Report& report, const Layout& layout,
                                                double step_seconds);

}  // namespace moebius
