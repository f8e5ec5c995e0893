#include "workloads/cluster/cluster_rates.h"

#include <algorithm>
#include <cmath>

namespace moebius {

namespace {

double per_unit(const ClusterPlan& plan, const FailureKind& kind) {
  const double heat =
      kind.by_heat ? std::exp(-plan.cooling.fewer_per_degree * plan.cooling.degrees_cooler) : 1;
  return kind.per_hour * heat;
}

double units(const ClusterPlan& plan, const FailureKind& kind, int nodes, double jobs) {
  switch (kind.unit) {
    case FailureUnit::kNode:
      return nodes;
    case FailureUnit::kDevice:
      return static_cast<double>(nodes) * plan.devices_per_node;
    case FailureUnit::kJob:
      return jobs;
  }
  return 0;
}

}  // namespace

double rate_of(const ClusterPlan& plan, const FailureKind& kind) {
  return per_unit(plan, kind) * units(plan, kind, plan.nodes, static_cast<double>(plan.jobs.size()));
}

double job_fault_rate(const ClusterPlan& plan, int nodes) {
  double rate = 0;
  for (const FailureKind& kind : plan.faults) rate += per_unit(plan, kind) * units(plan, kind, nodes, 1);
  return rate;
}

Time checkpoint_interval(const ClusterPlan& plan, const ClusterJob& job, const CheckpointCosts& costs) {
  const double rate = job_fault_rate(plan, job.nodes);
  const Time apart = rate > 0 ? time_from_seconds(3600 / rate) : plan.duration;
  Time interval = plan.checkpoint.interval;
  if (plan.checkpoint.choice == IntervalChoice::kYoung) interval = young_interval(costs.stall, apart);
  if (plan.checkpoint.choice == IntervalChoice::kDaly) interval = daly_interval(costs.stall, apart);
  return std::max({interval, job.step, Time{1}});
}

}  // namespace moebius
