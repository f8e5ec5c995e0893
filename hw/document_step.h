// One step of a pointer into a document.
#pragma once

#include <string_view>

#include "hw/document.h"

namespace moebius {

// Into an object by a key, into an array by an index; null where nothing stands.
const Value* step_into(const Value& value, std::string_view key);

}  // namespace moebius
