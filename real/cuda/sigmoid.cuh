#pragma once

#include "real/cuda/launch.cuh"

namespace moebius::cuda {

MOEBIUS_DEVICE float sigmoid(float x) {
  return 1 / (1 + expf(-x));
}

}  // namespace moebius::cuda
