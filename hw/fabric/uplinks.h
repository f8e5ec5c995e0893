// How many ports of a switch go up.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "hw/accelerator.h"

namespace moebius {

// `given`, or as many as the oversubscription (capacity down over capacity up) of its ports down leaves; a
// billion at most.
inline double count_of_uplinks(int given, int down, double oversubscription) {
  return given > 0 ? given : std::clamp(std::round(down / oversubscription), 1.0, 1e9);
}

// The fact of an oversubscription that follows from uplinks that a scenario states.
inline Fact follows_uplinks(const std::string& name, double oversubscription, const std::string& file) {
  return {.name = name,
          .value = oversubscription,
          .low = oversubscription,
          .high = oversubscription,
          .source = "scenario",
          .status = "given",
          .note = "by its uplinks",
          .text = fmt::format("{:.6g}", oversubscription),
          .file = file};
}

}  // namespace moebius
