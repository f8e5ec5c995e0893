// xAI's Grok of Hugging Face configurations. Two further norms a layer, caps of scores and multipliers of the
// embedding and of logits are not in the model.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model grok1(HfKeys& keys);
// Its experts stand beside an MLP that reads the same rows, as a shared expert does (residual_moe).
Model grok2(HfKeys& keys);

}  // namespace moebius
