#include <algorithm>

#include "sim/machine.h"
#include "sim/machine_driver.h"

namespace moebius {
namespace {

class PlainDriver : public MachineDriver {
 public:
  void run(Machine& machine, Time until) override {
    Time next = machine.next_event();
    while (!machine.has_completions() && machine.now() < until) {
      if (std::min(next, until) == kForever) return;
      next = machine.advance(std::min(next, until));
    }
  }
};

}  // namespace

std::unique_ptr<MachineDriver> make_plain_driver() {
  return std::make_unique<PlainDriver>();
}

}  // namespace moebius
