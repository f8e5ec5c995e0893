// Where the tree stands whose rules are tested.
#pragma once

#include <filesystem>

namespace moebius {

inline const std::filesystem::path kRoot = MOEBIUS_SOURCE_DIR;

}  // namespace moebius
