// The policies that scenarios name, by key, as their keys describe them.
#pragma once

#include <string>

namespace moebius {

std::string policies_text();

}  // namespace moebius
