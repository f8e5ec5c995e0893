// The command line of a list of commands: parses it, runs the one that was chosen and turns what it throws
// into a sentence and an exit code.
#pragma once

#include <vector>

#include "workloads/command_line/command.h"

namespace moebius {

// 0 done, 1 the run failed, 2 the input is wrong.
int run_command_line(const std::vector<Command>& commands, int argc, char** argv);

}  // namespace moebius
