// The bench on the GPU: an op runs as CudaExecutor gives it to the device, alone, timed by the device's
// events.
#pragma once

#include <memory>

#include "workloads/cost/op_bench.h"

namespace moebius {

// run_error: built without CUDA, no device, several devices.
std::unique_ptr<OpBench> make_cuda_bench();

}  // namespace moebius
