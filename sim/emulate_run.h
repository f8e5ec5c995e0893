// A job on the simulator with compute costs from a device at hand. The network and whatever else is not
// compute is simulated as the scenario says.
#pragma once

#include <functional>
#include <string>

#include "sim/sim_run.h"
#include "workloads/cost/measured_ops.h"

namespace moebius {

struct EmulateRun {
  SimRun simulation;                        // without a source of costs
  std::function<MeasuringDevice()> device;  // errors: of those who open it
  std::string journal;                      // file for what was measured; empty: none
};

// Finds the distinct ops of the representative ranks by simulating the job, read again, with costs from the
// model, measures those that the journal does not know (a note on standard error before, where it will take
// long), and starts the simulator on what was found. Errors are start_simulator's and MeasuredOps's.
StartedExecutor start_emulation(const Job& job, const Layout& layout, Recorder& recorder,
                                const EmulateRun& run);

}  // namespace moebius
