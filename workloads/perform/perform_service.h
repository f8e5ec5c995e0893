// A whole service under the simulated clock: each pool's iterations are timed on an executor of its own, and
// the system runs on what they take.
#pragma once

#include "workloads/perform/perform.h"

namespace moebius {

// Of a job that has `service`. run_error when it does not fit; errors are those of the executor.
Outcome perform_service(Job& job, const StartExecutor& start, const Hooks& hooks);

// Blocks in use and blocks there are, both of one pool: the one whose replicas came nearest to having none
// left.
void set_fullest_cache(const std::vector<ServicePoolFigures>& pools, ServingFigures& figures);

}  // namespace moebius
