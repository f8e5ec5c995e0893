// What parameters start from, made where they stand.
#include "real/cuda/kernels_initial.h"
#include "real/cuda/launch.cuh"

namespace moebius::cuda {
namespace {

struct Initial {
  InitialValues of;
  FlatPart part;
  Operand y;
  MOEBIUS_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t index = part.first + i;
    store(y, i, index < part.beyond ? static_cast<float>(of(index)) : 0.0f);
  }
};

}  // namespace

void initial_values(Stream stream, const InitialValues& of, const FlatPart& part, const Operand& y) {
  launch_elements(stream, y.elements(), Initial{of, part, y});
}

}  // namespace moebius::cuda
