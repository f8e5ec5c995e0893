#include "real/processes/run_together.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/mpi/mpi_transport.h"

namespace moebius {
namespace {

void be_silent() {
  if (std::freopen("/dev/null", "w", stdout) == nullptr) throw run_error("/dev/null cannot be opened");
}

}  // namespace

// Open MPI; MPICH and Intel's MPI; PMIx launchers, whose step of Slurm tells the number.
int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* count = std::getenv(name)) return std::max(1, std::atoi(count));
  }
  const char* tasks = std::getenv("PMIX_RANK") != nullptr ? std::getenv("SLURM_STEP_NUM_TASKS") : nullptr;
  return tasks == nullptr ? 1 : std::max(1, std::atoi(tasks));
}

int run_together(const std::function<int(Processes*)>& command) {
  if (launched_processes() == 1) return command(nullptr);
  Processes processes(start_mpi());
  if (!processes.speaks()) be_silent();
  int code = 0;
  std::optional<Error> failure;
  try {
    code = command(&processes);
  } catch (const Error& error) {
    failure = error;
  }
  failure = processes.farewell(failure);
  if (!processes.speaks()) return 0;
  if (failure) throw *failure;
  return code;
}

void require_one_process() {
  const int count = launched_processes();
  if (count == 1) return;
  throw run_error(
      fmt::format("a launcher started {} processes: only --executor host runs in more than one", count));
}

}  // namespace moebius
