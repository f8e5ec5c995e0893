// An architecture for people.
#pragma once

#include <string>

#include "models/model.h"

namespace moebius {

std::string billions(double parameters);  // "671.03 B"
// Its name, sizes, parameters by what they belong to and source; of one that cannot run, why.
std::string model_text(const Model& model);
// The same of a model that was read from a file of Hugging Face's, behind an empty line; of others nothing.
std::string imported_text(const Model& model);

}  // namespace moebius
