// A step's messages with the ways that they take, for who moves them to others while they are under way.
#pragma once

#include <vector>

#include "sim/traffic/flow_paths.h"

namespace moebius {

// What one message sends over one path. Inside a device (from = to) and inside a node: all of it.
struct StepPart {
  std::int32_t from = 0, to = 0;  // devices
  FlowPath way;
  double size = 0;  // bytes of the whole message
  double bytes() const { return size * way.share; }
};

struct StepParts {
  bool lockstep = false;  // see Traffic; one flow class for each size, in the order of first use
  bool single = false;    // one flow class for two NICs and path; else one for each wire
  double most_rate = 0;
  std::vector<StepPart> parts;  // those of one message stand side by side
};

}  // namespace moebius
