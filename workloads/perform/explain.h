// Where one step's time comes from, op by op: the layers of the busiest class of ranks in one microbatch from
// the middle of the run, and every op of one of those layers with its shape, its duration and how that is
// known; of a service, of its first iteration and of the one in the middle of the run; and, where the network
// was sampled, when its tiers were busy.
#pragma once

#include <string>

#include "workloads/perform/perform.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

// A service keeps a row a submission unless it is told otherwise; to explain it takes its ops.
void keep_ops(Scenario& scenario);
// Needs the ops of a timeline ("detail": "ops"); says so when there are none.
std::string explain(const Timeline& timeline, ScenarioKind kind);
// And below it, of a simulation, every distinct collective with the algorithms it could have gone by, and
// what would help.
std::string explain_run(const Outcome& outcome);

}  // namespace moebius
