// Ling and Ring (inclusionAI), model types bailing_moe and bailing_moe_v2.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model bailing_moe(HfKeys& keys);
Model bailing_moe_v2(HfKeys& keys);

}  // namespace moebius
