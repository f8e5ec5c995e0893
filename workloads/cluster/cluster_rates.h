// How often things break in a cluster as it is cooled, and what follows for its jobs.
#pragma once

#include <optional>

#include "workloads/cluster/cluster_plan.h"

namespace moebius {

inline constexpr Time kLookAgain{60'000'000'000};  // for a bad node, where its job does not run

// An hour, of all that could break so in the whole cluster; jobs count as if all ran at once.
double rate_of(const ClusterPlan& plan, const FailureKind& kind);
// An hour, of all that stops or harms a job on so many nodes.
double job_fault_rate(const ClusterPlan& plan, int nodes);
// Between faults of a job on so many nodes; where no kind has a rate by the faults at stated times, whose
// nodes may be anybody's. Nothing: nothing fails.
std::optional<Time> faults_apart(const ClusterPlan& plan, int nodes);
// As the plan chooses it for this job: whole steps, since there is state only at their ends. Nothing: it is
// to be the best one, and nothing fails.
std::optional<Time> checkpoint_interval(const ClusterPlan& plan, const ClusterJob& job,
                                        const CheckpointCosts& costs);
// The same as a time, longer than all that is simulated where there is none.
Time interval_or_never(const ClusterPlan& plan, const ClusterJob& job, const CheckpointCosts& costs);

}  // namespace moebius
