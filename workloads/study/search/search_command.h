// `search`: the best plans of a scenario, ranked, with reasons.
#pragma once

#include "workloads/command_line/chosen_executor.h"
#include "workloads/study/search/transfer_times.h"

namespace moebius {

// `rough` and `fine` are the simulator at alpha-beta and at fluid; `rough` says where data is. `transfers`: what
// communication takes at `rough`.
Command search_command(const ChosenExecutor& rough, const ChosenExecutor& fine,
                       const KnowTransfers& transfers);

}  // namespace moebius
