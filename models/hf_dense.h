// Families of Hugging Face configurations whose layers have no experts.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model bloom(
    HfKeys& keys);  // its slopes on scores (ALiBi) are not in the model, nor is the norm of its embedding
Model gemma2(HfKeys& keys);  // two further norms a layer and caps of scores are not in the model
Model gemma3(HfKeys& keys);  // nor here
Model opt(HfKeys& keys);
Model phi3(HfKeys& keys);
Model seed_oss(HfKeys& keys);
Model starcoder2(HfKeys& keys);

}  // namespace moebius
