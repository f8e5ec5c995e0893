// Many jobs on one cluster for weeks: every shape is simulated alone on each pool and size, pairs of shapes
// on the links of one leaf, then the queues event by event.
#pragma once

#include "workloads/perform/perform.h"

namespace moebius {

// Of a job with `scenario.operations->queueing`. Errors are those of the executor, and run_error for a shape
// that runs nowhere.
Outcome perform_queues(Job& job, const StartExecutor& start, const Hooks& hooks);

}  // namespace moebius
