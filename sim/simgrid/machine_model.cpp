#include "sim/simgrid/machine_model.h"

#include <algorithm>

namespace moebius {

void MachineModel::run(const simgrid::s4u::Engine& engine, Machine& machine, Time until) {
  if (machine.has_completions() || machine.now() >= until) return;
  machine_ = &machine;
  until_ = until;
  stop_.clear();
  engine.track_vetoed_activities(&stop_);
  engine.run();
  engine.track_vetoed_activities(nullptr);
  machine_ = nullptr;
}

// Up to the first event that brings a completion, or to `until`, which is left to update_actions_state().
void MachineModel::run_ahead() {
  target_ = std::min(machine_->next_event(), until_);
  while (target_ != kForever && target_ != until_) {
    const Time next = machine_->advance(target_);
    if (machine_->has_completions()) return;
    target_ = std::min(next, until_);
  }
}

double MachineModel::next_occurring_event(double now) {
  if (machine_ == nullptr) return -1;
  if (alone_ && !machine_->has_completions()) {
    run_ahead();
  } else {
    target_ = std::min(machine_->next_event(), until_);
  }
  return target_ == kForever ? -1 : std::max(0.0, origin_ + target_.seconds() - now);
}

void MachineModel::update_actions_state(double now, double) {
  constexpr double kHalfNanosecond = 0.5e-9;
  if (machine_ == nullptr || target_ == kForever || now < origin_ + target_.seconds() - kHalfNanosecond)
    return;
  if (machine_->now() < target_ || !alone_) machine_->advance(target_);
  stop_.clear();  // messages put themselves here between getting their sender and their receiver
  if (machine_->has_completions() || machine_->now() >= until_) stop_.insert(nullptr);
}

}  // namespace moebius
