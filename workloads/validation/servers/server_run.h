// One scenario of a row of measured servers, simulated.
#pragma once

#include <cstdint>
#include <string>

#include "hw/document.h"
#include "workloads/job.h"
#include "workloads/perform/perform.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

struct ServerRun {
  double ttft = 0, tpot = 0;                // seconds, means
  double ttft_median = 0, tpot_median = 0;  // over requests
  std::int64_t devices = 0;                 // of all its pools
  std::string failure = {};                 // why there are none, in words that runs of one kind share
};

ServerRun run_server(const Document& scenario, const Library& library, const StartExecutor& start,
                     StepTimings& timings);

}  // namespace moebius
