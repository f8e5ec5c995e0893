// Weeks of a cluster: the steps of its jobs are simulated once, then the jobs over time.
#pragma once

#include "workloads/perform/perform.h"

namespace moebius {

// Of a job that has `scenario.operations`. Errors are those of the executor.
Outcome perform_cluster(Job& job, const StartExecutor& start);

}  // namespace moebius
