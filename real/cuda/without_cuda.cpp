// The CUDA executor where there was no nvcc to build it.
#include "hw/error.h"
#include "real/cuda/cuda_bench.h"
#include "real/cuda/cuda_run.h"
#include "real/cuda/cuda_under_test.h"

namespace moebius {
namespace {

Error no_cuda() {
  return run_error("this moebius was built without CUDA");
}

}  // namespace

StartedExecutor start_cuda(const Job&, const Layout&, Recorder&, const RealRun&) {
  throw no_cuda();
}

std::unique_ptr<OpBench> make_cuda_bench() {
  throw no_cuda();
}

DeviceUnderTest cuda_under_test(int, const Catalog&, const std::string&) {
  throw run_error("this moebius was built without CUDA");
}

}  // namespace moebius
