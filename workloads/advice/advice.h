// What would help: where the step's time is lost, and what single changes of the plan would gain.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workloads/job.h"
#include "workloads/perform/perform.h"
#include "workloads/report/report.h"

namespace moebius {

// A job of the same scenario with more --set changes; input_error when it refuses them.
using ReadChanged = std::function<Job(const std::vector<std::string>& sets)>;

// Of a training run that was simulated: what costs it time, mean over ranks, longest first; and each switch
// of the plan that is not thrown yet, run by itself and compared, best first. What the scenario refuses or
// does not fit is told with its reason. Runs go side by side: `start` must not use what one process has only
// once; without it no switch is tried, and `untried` says so.
Advice advise(const Outcome& run, const ReadChanged& read, const StartExecutor& start);

std::string to_text(const Advice& advice);

}  // namespace moebius
