// ERNIE 4.5 of Hugging Face configurations.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model ernie4_5(HfKeys& keys);
Model ernie4_5_moe(HfKeys& keys);  // dense layers above those with experts make it unsupported

}  // namespace moebius
