// Who carries out the runs of a command that makes many.
#pragma once

#include <functional>
#include <string>

#include "workloads/command_line/command.h"
#include "workloads/perform/perform.h"

namespace moebius {

// Alive as long as `start`.
struct ChosenExecutor {
  StartExecutor start;                      // several at a time
  std::string* data;                        // --data
  CommandOptions options;                   // of its own
  std::function<std::string()> means = {};  // its name and settings, once they are parsed: "sim fluid"
};

}  // namespace moebius
