// The CUDA executor as one that carries out jobs.
#pragma once

#include <string>

#include "workloads/perform.h"

namespace moebius {

// The executor for a job and its figures. run_error: built without CUDA, no device, ranks that the device's
// memory does not hold together, or that are folded; input_error: the job starts from a checkpoint or leaves
// one behind, or asks for a dump of activations (a file; empty: none).
StartedExecutor start_cuda(const Job& job, const Layout& layout, Recorder& recorder,
                           const std::string& dump_activations);

}  // namespace moebius
