// A whole service under the simulated clock: each pool's iterations are timed on an executor of its own, and
// the system runs on what they take.
#pragma once

#include "workloads/perform.h"

namespace moebius {

// Of a job that has `service`. run_error when it does not fit; errors are those of the executor.
Outcome perform_service(Job& job, const StartExecutor& start, const Hooks& hooks);

}  // namespace moebius
