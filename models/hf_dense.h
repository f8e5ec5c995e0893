// Families of Hugging Face configurations whose layers have no experts.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model apertus(HfKeys& keys);   // two numbers of each activation (xIELU) are not in the model
Model baichuan(HfKeys& keys);  // slopes on scores (ALiBi) of the larger one are not in the model
Model bloom(
    HfKeys& keys);  // its slopes on scores (ALiBi) are not in the model, nor is the norm of its embedding
Model gemma1(HfKeys& keys);  // the scale of its embedding is not in the model
Model gemma2(HfKeys& keys);  // two further norms a layer and caps of scores are not in the model
Model gemma3(HfKeys& keys);  // nor here
Model internlm2(HfKeys& keys);
Model internlm3(HfKeys& keys);
Model opt(HfKeys& keys);
Model phi3(HfKeys& keys);
Model seed_oss(HfKeys& keys);
Model smollm3(HfKeys& keys);
Model starcoder2(HfKeys& keys);

}  // namespace moebius
