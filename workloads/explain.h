// Where one step's time comes from, op by op: the layers of the busiest class of ranks in one microbatch from
// the middle of the run, and every op of one of those layers with its shape, its duration and how that is
// known; and, where the network was sampled, when its tiers were busy.
#pragma once

#include <string>

#include "workloads/perform.h"
#include "workloads/schedule/timeline.h"

namespace moebius {

// Needs the ops of a timeline ("detail": "ops"); says so when there are none.
std::string explain(const Timeline& timeline);
// And below it, of a simulation, every distinct collective with the algorithms it could have gone by, and what
// would help.
std::string explain_run(const Outcome& outcome);

}  // namespace moebius
