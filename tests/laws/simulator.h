// Starts the simulator for whoever runs plans of its own.
#pragma once

#include "sim/sim_run.h"
#include "workloads/perform/perform.h"

namespace moebius {

inline StartExecutor simulator(NetworkDetail detail) {
  return [detail](const Job& job, const Layout& layout, Recorder& recorder) {
    return start_simulator(job, layout, recorder, {"", {detail, Driver::kPlain}});
  };
}

}  // namespace moebius
