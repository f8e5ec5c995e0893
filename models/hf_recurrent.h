// Families of Hugging Face configurations most of whose layers keep a state that a Model has no way for, or
// whose layers have heads of two shapes: all of them unsupported, with the reason.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

Model bailing_linear(HfKeys& keys);     // Ring-linear, Ling 2.5
Model jamba(HfKeys& keys);
Model kimi_linear(HfKeys& keys);
Model lightning_minimax(HfKeys& keys);  // MiniMax-Text-01 and M1
Model mimo_v2(HfKeys& keys);
Model nemotron_h(HfKeys& keys);

}  // namespace moebius
