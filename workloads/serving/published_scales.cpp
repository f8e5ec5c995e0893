#include "workloads/serving/published_scales.h"

namespace moebius {

Fp8Scales published_scales(const Model& model) {
  return model.fp8_scales.value_or(model.experts.routed == 0 ? Fp8Scales::kTensor : Fp8Scales::kBlock);
}

}  // namespace moebius
