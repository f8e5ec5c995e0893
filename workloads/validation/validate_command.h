// `validate`: every scenario that expects something, and tables of measured rows.
#pragma once

#include <memory>
#include <string>

#include "workloads/command_line/command.h"
#include "workloads/perform.h"

namespace moebius {

// What the command asks of whoever carries out its runs; alive as long as `start`.
struct ValidateExecutor {
  StartExecutor start;     // several at a time
  std::string* data;       // --data
  CommandOptions options;  // of its own
};

Command validate_command(const ValidateExecutor& executor);

}  // namespace moebius
