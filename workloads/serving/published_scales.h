// How the 8-bit checkpoint of a model is scaled where a scenario does not say.
#pragma once

#include "models/model.h"

namespace moebius {

// As the catalog or the configuration says of the one that is published. Of others: dense models are scaled by
// tools, a tensor or a column at a time (ModelOpt, compressed-tensors); those with experts in blocks, as
// DeepSeek-V3 and most that followed it.
Fp8Scales published_scales(const Model& model);

}  // namespace moebius
