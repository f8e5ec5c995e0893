// Whether the sizes of an imported architecture go together, told in the names of the file they were read
// from.
#pragma once

#include "models/hf_keys.h"
#include "models/model.h"

namespace moebius {

// Fails where the key stands that fed the size at fault, with the file's names in the sentence; of a key that
// the file leaves out, at its object, saying so.
void require_consistent(const Model& model, const HfKeys& keys);

}  // namespace moebius
