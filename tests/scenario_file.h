// Scenarios that ship.
#pragma once

#include <string>

namespace moebius::test {

// "smoke/moe-64-h800.json" where it stands in this tree.
inline std::string scenario_file(const std::string& name) {
  return std::string(MOEBIUS_SOURCE_DIR) + "/scenarios/" + name;
}

}  // namespace moebius::test
