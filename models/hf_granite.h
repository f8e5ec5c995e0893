// IBM's Granite of Hugging Face configurations. Its multipliers of the embedding, of residuals, of scores and
// of logits are numbers in passes that are there anyway, and not in the model.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model granite(HfKeys& keys);
Model granitemoe(HfKeys& keys);
Model granitemoeshared(HfKeys& keys);
Model granitemoehybrid(HfKeys& keys);  // Granite 4: Mamba layers make it unsupported

}  // namespace moebius
