#include <algorithm>

#include "sim/machine.h"
#include "sim/machine_driver.h"

namespace moebius {
namespace {

class PlainDriver : public MachineDriver {
 public:
  void run(Machine& machine, Time until) override {
    while (!machine.has_completions() && machine.now() < until) {
      const Time next = std::min(machine.next_event(), until);
      if (next == kForever) return;
      machine.advance(next);
    }
  }
};

}  // namespace

std::unique_ptr<MachineDriver> make_plain_driver() {
  return std::make_unique<PlainDriver>();
}

}  // namespace moebius
