// The CUDA executor as one that carries out jobs.
#pragma once

#include <string>

#include "workloads/perform.h"

namespace moebius {

struct CudaRun {
  std::string dump_activations;  // a file, refused; empty: none
  std::string trace_kernels;     // a file for what the device ran for each op (op_trace.h); empty: none
};

// The executor for a job and its figures. run_error: built without CUDA, no device, ranks that the device's
// memory does not hold together, or that are folded; input_error: the job starts from a checkpoint or leaves
// one behind, or asks for a dump of activations.
StartedExecutor start_cuda(const Job& job, const Layout& layout, Recorder& recorder,
                           const CudaRun& request);

}  // namespace moebius
