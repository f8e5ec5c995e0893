// The CUDA executor with the device's half.
#include "real/cuda/cuda_executor.h"

namespace moebius {

std::unique_ptr<CudaExecutor> make_cuda_executor(const Layout& layout, Recorder& recorder,
                                                 const cuda::CudaOptions& options) {
  return std::make_unique<CudaExecutor>(layout, recorder, options);
}

double cuda_memory_bytes() {
  return cuda::open_device().memory_bytes;
}

std::vector<double> cuda_memories() {
  std::vector<double> bytes;
  for (const cuda::DeviceFacts& device : cuda::open_devices()) bytes.push_back(device.memory_bytes);
  return bytes;
}

}  // namespace moebius
