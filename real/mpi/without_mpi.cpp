#include "hw/error.h"
#include "real/mpi/mpi_transport.h"

namespace moebius {

bool has_mpi() {
  return false;
}

std::unique_ptr<Transport> start_mpi() {
  throw run_error("this moebius was built without MPI: run it in one process");
}

}  // namespace moebius
