// Reads a Hugging Face config.json into a Model. The file is untrusted. Keys that do not change the architecture
// (dropout, token ids, dtype ...) are ignored; a key that would change it and is not understood makes the model `unsupported`
// with the reason, never silently wrong.
#pragma once

#include <string>

#include "hw/document.h"
#include "models/model.h"

namespace moebius {

Model model_from_hf_config(const Document& config);

}  // namespace moebius
