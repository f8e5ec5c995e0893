// `align`: a run's activations beside a reference.
#pragma once

#include "workloads/command_line/command.h"

namespace moebius {

Command align_command();

}  // namespace moebius
