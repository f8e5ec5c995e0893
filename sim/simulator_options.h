// Options of the command line that say how it is simulated.
#pragma once

#include <optional>

#include "sim/sim_run.h"
#include "workloads/command_line/command.h"

namespace moebius {

// `--detail`: what the driver carries; the plain loop has no native network.
CommandOption detail_option(std::optional<NetworkDetail>& detail, Driver driver);

// With `--driver`.
CommandOptions simulator_options(std::optional<NetworkDetail>& detail, std::optional<Driver>& driver);

}  // namespace moebius
