// Families of Hugging Face configurations whose norms stand behind attention and MLP, x + norm(attention(x)),
// where a Model has them before. They are as many and as wide.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model exaone4(HfKeys& keys);
Model olmo2(HfKeys& keys);
Model olmo3(HfKeys& keys);

}  // namespace moebius
