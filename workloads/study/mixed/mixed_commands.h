// `matrix` and `split`: how efficient chips are at what, and how a job is best given to chips of several
// kinds.
#pragma once

#include "workloads/command_line/chosen_executor.h"

namespace moebius {

Command matrix_command(const ChosenExecutor& executor);
Command split_command(const ChosenExecutor& executor);

}  // namespace moebius
