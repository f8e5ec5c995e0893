// The CUDA executor where there was no nvcc to build it.
#include "hw/error.h"
#include "real/cuda/cuda_run.h"
#include "real/cuda/cuda_under_test.h"

namespace moebius {

StartedExecutor start_cuda(const Job&, const Layout&, Recorder&, const std::string&) {
  throw run_error("this moebius was built without CUDA");
}

DeviceUnderTest cuda_under_test(int, const Catalog&, const std::string&) {
  throw run_error("this moebius was built without CUDA");
}

}  // namespace moebius
