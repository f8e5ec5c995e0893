// `moebius import`: somebody else's profile as a run.
#pragma once

#include "workloads/command_line/command.h"

namespace moebius {

Command import_command();

}  // namespace moebius
