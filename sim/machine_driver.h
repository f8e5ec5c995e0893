// Who turns the crank of the machine: a plain loop, or SimGrid's.
#pragma once

#include <memory>

#include "hw/units.h"

namespace moebius {

class Machine;

class MachineDriver {
 public:
  virtual ~MachineDriver() = default;
  // Advances the machine until it has completions, or to `until`, or until nothing will happen by itself.
  virtual void run(Machine& machine, Time until) = 0;
};

// From event to event, with nothing else in the process.
std::unique_ptr<MachineDriver> make_plain_driver();

}  // namespace moebius
