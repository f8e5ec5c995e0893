#include "real/monitor.h"

#include <algorithm>

#include "real/thread_clock.h"

namespace moebius {

Monitor::Monitor(int ranks, bool one_at_a_time, int first) : one_at_a_time_(one_at_a_time), first_(first) {
  for (int i = 0; i < ranks; ++i) places_.push_back(std::make_unique<Place>());
}

template <class Until>
void Monitor::block(Lock& lock, int rank, const std::string& what, const std::function<bool()>& ready,
                    const Until& until) {
  Place& place = *places_[rank - first_];
  const Time before = one_at_a_time_ ? thread_cpu_time() : Time{};
  place.ready = &ready;
  place.what = &what;
  if (!ready()) {
    owner_.notify_one();  // perhaps nobody can go on now
    pass_turn(rank);
  }
  place.wake.wait(lock, [&] { return until() && may_run(rank); });
  place.ready = nullptr;
  place.what = nullptr;
  if (!one_at_a_time_) return;
  turn_ = rank;
  place.cpu_of_waiting += thread_cpu_time() - before;
}

// To the next rank that can go on, so that the order of ranks is the same in every run. A rank that comes to
// wait for the first time has no turn to pass: another one may run.
void Monitor::pass_turn(int rank) {
  if (!one_at_a_time_ || (turn_ >= 0 && turn_ != rank)) return;
  turn_ = -1;
  const int ranks = static_cast<int>(places_.size());
  for (int i = 1; i < ranks; ++i) {
    Place& next = *places_[(rank - first_ + i) % ranks];
    if (next.ready == nullptr || !(*next.ready)()) continue;
    next.wake.notify_one();
    return;
  }
}

void Monitor::wait(Lock& lock, int rank, const std::string& what, const std::function<bool()>& ready) {
  block(lock, rank, what, ready, [&] { return stopped_ || ready(); });
  if (!ready()) throw Stopped();
}

void Monitor::wait_to_end(Lock& lock, int rank, const std::string& what, const std::function<bool()>& ready) {
  block(lock, rank, what, ready, ready);
}

void Monitor::changed() {
  if (turn_ >= 0 && !stopped_) return;  // whoever runs tells the others when it waits
  for (const auto& place : places_) {
    if (place->ready != nullptr && (*place->ready)()) place->wake.notify_one();
  }
  owner_.notify_one();
}

void Monitor::stop() {
  stopped_ = true;
  for (const auto& place : places_) place->wake.notify_one();
  owner_.notify_one();
}

void Monitor::wait_for_change(Lock& lock, const std::chrono::steady_clock::time_point* deadline) {
  if (deadline == nullptr) {
    owner_.wait(lock);
  } else {
    owner_.wait_until(lock, *deadline);
  }
}

bool Monitor::rests() const {
  return std::all_of(places_.begin(), places_.end(),
                     [](const auto& place) { return place->ready != nullptr && !(*place->ready)(); });
}

std::vector<std::string> Monitor::stuck() const {
  if (!rests()) return {};
  std::vector<std::string> waiting;
  for (const auto& place : places_) {
    if (!place->what->empty()) waiting.push_back(*place->what);
  }
  return waiting;
}

}  // namespace moebius
