// `moebius export`: a run for other viewers.
#pragma once

#include "workloads/command_line/command.h"

namespace moebius {

Command export_command();

}  // namespace moebius
