// `moebius view`: the viewer.
#pragma once

#include "workloads/command_line/command.h"

namespace moebius {

Command view_command();

}  // namespace moebius
