// `search`: the best plans of a scenario, ranked, with reasons.
#pragma once

#include "workloads/command_line/chosen_executor.h"

namespace moebius {

// `rough` and `fine` are the simulator at alpha-beta and at fluid; `rough` says where data is.
Command search_command(const ChosenExecutor& rough, const ChosenExecutor& fine);

}  // namespace moebius
