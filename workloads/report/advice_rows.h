// What a report says of what would help.
#pragma once

#include <string>
#include <vector>

namespace moebius {

struct Cause {
  std::string name;
  double seconds = 0;  // of a step, mean over ranks
};

struct TriedSwitch {
  std::string name;
  std::vector<std::string> sets;  // "/json/pointer=value"
  double step_time_s = 0;         // 0: it did not run
  double gain = 0;                // tokens per second over those of the run, less one
  std::string refusal;            // why it did not run; empty: it did
  std::string lacks = {};         // memory, where the plan only reports that; empty: it fits
};

struct Advice {
  std::vector<Cause> causes;
  std::vector<TriedSwitch> switches;  // best first, then those that do not fit, that did not run
  std::string untried = {};           // why none was tried; empty: they were
};

}  // namespace moebius
