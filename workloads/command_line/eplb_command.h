// `eplb`: one placement of experts from statistics of their load.
#pragma once

#include "workloads/command_line/command.h"

namespace moebius {

Command eplb_command();

}  // namespace moebius
