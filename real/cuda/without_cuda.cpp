// The CUDA executor where there was no nvcc to build it.
#include "hw/error.h"
#include "real/cuda/cuda_run.h"

namespace moebius {

StartedExecutor start_cuda(const Job&, const Layout&, Recorder&, const HostRun&) {
  throw run_error("this moebius was built without CUDA");
}

}  // namespace moebius
