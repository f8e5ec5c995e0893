// A command in all processes that a launcher started.
#pragma once

#include <functional>

#include "real/processes/processes.h"

namespace moebius {

// How many processes a launcher (mpirun, srun) started, by the variables that it leaves; 1 without one.
int launched_processes();

// Calls command(null) where this process is the only one. Else starts MPI and calls it in every process,
// where all but the first print nothing; returns when all have come to the end. The first process returns the
// exit code of its command, or throws what any process failed with; the others return 0, since a launcher
// ends all when one fails, and the first might not have spoken.
int run_together(const std::function<int(Processes*)>& command);

// Whether this process prints and writes: the first one, or the only one.
inline bool speaks(const Processes* processes) {
  return processes == nullptr || processes->speaks();
}

// run_error when a launcher started several processes, which would all do the same.
void require_one_process();

}  // namespace moebius
