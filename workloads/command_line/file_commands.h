// Commands about files that runs left behind: compare, convert.
#pragma once

#include "workloads/command_line/command.h"

namespace moebius {

Command compare_command();
Command convert_command();

}  // namespace moebius
