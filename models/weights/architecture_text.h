// A model in the vocabulary of the catalog (models/catalog/README.md), for files that must stand alone.
#pragma once

#include <string>

#include "models/model.h"

namespace moebius {

// One JSON object that architecture_of() reads back; names, sources and published counts are left out, the id
// is kept.
std::string architecture_text(const Model& model);

// input_error at its place when the object is not an architecture.
Model architecture_of(const Value& value, const Place& place);

}  // namespace moebius
