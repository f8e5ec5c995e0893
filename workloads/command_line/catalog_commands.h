// Commands that show what the binary knows: list, show, schema.
#pragma once

#include "workloads/command_line/command.h"

namespace moebius {

Command list_command();
Command show_command();
Command schema_command();

}  // namespace moebius
