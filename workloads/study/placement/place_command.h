// `place`: which rank stands on which device.
#pragma once

#include "workloads/command_line/chosen_executor.h"

namespace moebius {

Command place_command(const ChosenExecutor& executor);

}  // namespace moebius
