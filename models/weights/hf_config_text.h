// config.json of weights whose model was never one of Hugging Face's files: a catalog's, or a scenario's.
#pragma once

#include <string>

#include "models/model.h"
#include "models/weights/weight_names.h"

namespace moebius {

// The configuration of a family that spells its weights so and that model_from_hf_config() reads as this very
// architecture; empty: no family that we know says it. Constants of the arithmetic are those of a model
// without a config.json (models/constants.h).
std::string hf_config_text(const Model& model, WeightNaming naming);

}  // namespace moebius
