// `sweep`: a grid of what-ifs into one SQLite file.
#pragma once

#include "workloads/command_line/chosen_executor.h"
#include "workloads/study/sweep.h"

namespace moebius {

// `companions` are asked for when the command runs.
Command sweep_command(const ChosenExecutor& executor, const std::function<SweepCompanions()>& companions);

}  // namespace moebius
