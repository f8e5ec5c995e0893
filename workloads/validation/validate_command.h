// `validate`: every scenario that expects something, and tables of measured rows.
#pragma once

#include "workloads/command_line/chosen_executor.h"

namespace moebius {

Command validate_command(const ChosenExecutor& executor);

}  // namespace moebius
