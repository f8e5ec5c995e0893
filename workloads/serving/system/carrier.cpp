// A service whose iterations and transfers somebody carries out: it tells when they have ended.
#include "workloads/serving/system/serving_state.h"

namespace moebius {

std::optional<Time> ServingSystem::due() const {
  const State& s = *state_;
  const std::optional<Time> arrival = s.feed.due();
  if (s.events.empty()) return arrival;
  return arrival ? std::min(*arrival, s.events.top().time) : s.events.top().time;
}

void ServingSystem::advance_to(Time now) {
  for (std::optional<Time> next = due(); next && *next <= now; next = due()) advance();
}

void ServingSystem::iteration_ended(std::int32_t number, Time now) {
  State& s = *state_;
  advance_to(now);
  s.now = std::max(s.now, now);
  s.tell_moments(s.now);
  const Location at = s.places[number];
  s.instance(at).ended(s.now);
  if (s.rules.observer) s.tell_iteration(at, s.instance(at).begun(), s.now);
  s.end_iteration(number);
  s.start_waiting();
}

void ServingSystem::cache_moved(std::int32_t id, Time now) {
  State& s = *state_;
  advance_to(now);
  s.now = std::max(s.now, now);
  s.tell_moments(s.now);
  s.end_transfer(id);
  s.start_waiting();
}

const Instance& ServingSystem::instance(std::int32_t number) const {
  return state_->instance(state_->places[number]);
}
Instance& ServingSystem::instance(std::int32_t number) {
  return state_->instance(state_->places[number]);
}

}  // namespace moebius
