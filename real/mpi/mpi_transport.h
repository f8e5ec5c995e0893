// Processes that an MPI launcher started. The library is opened at run time, so that the binary needs none.
#pragma once

#include <memory>

#include "real/processes/transport.h"

namespace moebius {

// Whether this build knows MPI (Open MPI's header was there).
bool has_mpi();

// Starts MPI: once in a process, and only where a launcher (mpirun, srun) started it. run_error when this
// build knows no MPI, or the library cannot be opened.
std::unique_ptr<Transport> start_mpi();

}  // namespace moebius
