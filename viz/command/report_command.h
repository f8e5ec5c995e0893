// `moebius report`: a run, or two, as a page to read.
#pragma once

#include "workloads/command_line/command.h"

namespace moebius {

Command report_command();

}  // namespace moebius
