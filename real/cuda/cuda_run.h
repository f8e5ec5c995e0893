// The CUDA executor as one that carries out jobs.
#pragma once

#include "real/companions.h"

namespace moebius {

// The executor for a job and its figures. run_error: built without CUDA, no device, ranks that the device's
// memory does not hold together, or that are folded; input_error as start_host() (real/host/host_run.h).
StartedExecutor start_cuda(const Job& job, const Layout& layout, Recorder& recorder, const RealRun& request);

}  // namespace moebius
