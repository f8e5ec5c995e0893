// What commands about one scenario file take, and the ones that need no executor.
#pragma once

#include <string>

#include "workloads/command_line/command.h"
#include "workloads/job.h"

namespace moebius {

struct ScenarioArguments {
  std::string file, data;
  Changes changes;

  Job read() const { return read_job(file, changes, Library(data)); }
};

// SCENARIO, --set, --seed, --data.
CommandOptions scenario_options(ScenarioArguments& arguments);

Command check_command();

}  // namespace moebius
