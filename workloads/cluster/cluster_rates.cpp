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

Time whole_steps(Time interval, Time step) {
  if (step.ns <= 0) return std::max(interval, Time{1});
  return {std::max<std::int64_t>(1, (interval.ns + step.ns - 1) / step.ns) * step.ns};
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

std::optional<Time> faults_apart(const ClusterPlan& plan, int nodes) {
  double rate = job_fault_rate(plan, nodes);
  if (rate <= 0 && !plan.trace.empty())
    rate = static_cast<double>(plan.trace.size()) * nodes / plan.nodes / (plan.duration.seconds() / 3600);
  if (rate <= 0) return std::nullopt;
  return time_from_seconds(std::min(3600 / rate, kForever.seconds() / 2));
}

std::optional<Time> checkpoint_interval(const ClusterPlan& plan, const ClusterJob& job,
                                        const CheckpointCosts& costs) {
  Time interval = plan.checkpoint.interval;
  if (plan.checkpoint.choice != IntervalChoice::kGiven) {
    const std::optional<Time> apart = faults_apart(plan, job.nodes);
    if (!apart) return std::nullopt;
    const bool young = plan.checkpoint.choice == IntervalChoice::kYoung;
    interval = young ? young_interval(costs.stall, *apart) : daly_interval(costs.stall, *apart);
  }
  return whole_steps(interval, job.step);
}

Time interval_or_never(const ClusterPlan& plan, const ClusterJob& job, const CheckpointCosts& costs) {
  return checkpoint_interval(plan, job, costs).value_or(plan.duration + Time{1});
}

}  // namespace moebius
