// "--set /json/pointer=value", of scenarios and of what the catalogs hold.
#pragma once

#include <string>
#include <vector>

#include "hw/document.h"

namespace moebius {

// Changes the document as the option says; input_error where it does not begin with a pointer.
void apply_set(const std::string& set, Document& document);
void apply_sets(const std::vector<std::string>& sets, Document& document);

}  // namespace moebius
