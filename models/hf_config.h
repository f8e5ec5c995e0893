// Reads a Hugging Face config.json into a Model. `model_type` decides how it is read; an unknown one is an
// error that names the nearest known. The file is untrusted: every integer is bounded. Keys that do not
// change the architecture (dropout, token ids, dtype, rotary scaling ...) are ignored; a known key that
// changes it in a way that a Model cannot say makes the model `unsupported` with the reason, never silently
// wrong; parts that change little work (norms, numbers that multiply, slopes on scores) may be left out or
// stand in for each other, which Model::note says. A key that the file leaves out is what the family's
// configuration class says (transformers, configuration_*.py), sizes apart, which are required. Left out
// because they are below a thousandth of a layer: attention sinks, correction biases of the router, the bias
// of a lone output projection.
#pragma once

#include <string>

#include "hw/document.h"
#include "models/model.h"

namespace moebius {

Model model_from_hf_config(const Document& config);
bool is_imported(const Model& model);  // by it

}  // namespace moebius
