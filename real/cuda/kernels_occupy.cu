// Multiprocessors that somebody else holds.
#include <atomic>

#include "real/cuda/kernels.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {
namespace {

struct WaitForStop {
  int* held;
  const int* stop;
  MOEBIUS_DEVICE void arrive() const {
#ifdef __CUDACC__
    atomicAdd_system(held, 1);
#else
    std::atomic_ref<int>(*held).fetch_add(1);
#endif
  }
  MOEBIUS_DEVICE bool is_over() const {
#ifdef __CUDACC__
    return *static_cast<const volatile int*>(stop) != 0;
#else
    return std::atomic_ref<int>(*const_cast<int*>(stop)).load() != 0;
#endif
  }
};

}  // namespace

void occupy(Stream stream, int multiprocessors, int* held, const int* stop) {
  if (multiprocessors > 0) launch_occupiers(stream, multiprocessors, WaitForStop{held, stop});
}

}  // namespace moebius::cuda
