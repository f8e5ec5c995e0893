// The machine as one of the models whose next event SimGrid asks for. SimGrid's clock follows ours: it is a
// double, ours counts nanoseconds and decides. Only for the files that include SimGrid.
#pragma once

#include <set>

#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>

#include "sim/machine.h"

namespace moebius {

class MachineModel : public simgrid::kernel::resource::Model {
 public:
  // `origin`: SimGrid's clock at our time zero. It goes on from engine to engine. `alone`: nothing else of
  // SimGrid's is under way, so that its clock may go from completion to completion instead of from event to
  // event, at a quarter less cost.
  MachineModel(double origin, bool alone) : Model("machine"), origin_(origin), alone_(alone) {}

  // Until the machine has completions, or `until`, or nothing will happen by itself.
  void run(const simgrid::s4u::Engine& engine, Machine& machine, Time until);

  double next_occurring_event(double now) override;
  void update_actions_state(double now, double delta) override;

 private:
  void run_ahead();

  double origin_;
  bool alone_;
  Machine* machine_ = nullptr;
  Time until_, target_;
  // SimGrid's run() ends when an activity could not start: the only way to make it return while its own
  // communications are under way. The set is never looked into.
  std::set<simgrid::s4u::Activity*> stop_;
};

}  // namespace moebius
