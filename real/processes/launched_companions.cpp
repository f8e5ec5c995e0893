#include "real/processes/launched_companions.h"

#include "real/mpi/mpi_transport.h"
#include "real/processes/run_together.h"
#include "real/processes/shared_text.h"

namespace moebius {

SweepCompanions launched_companions() {
  return {launched_self(), launched_processes(),
          [](const std::string& text) { return shared_text(start_mpi(), text); }};
}

}  // namespace moebius
