#include "real/monitor.h"

#include <algorithm>

namespace moebius {

Monitor::Monitor(int ranks, int first) : first_(first) {
  for (int i = 0; i < ranks; ++i) places_.push_back(std::make_unique<Place>());
}

template <class Until>
void Monitor::block(Lock& lock, int rank, const std::string& what, const std::function<bool()>& ready,
                    const Until& until) {
  Place& place = *places_[rank - first_];
  place.ready = &ready;
  place.what = &what;
  if (!ready()) owner_.notify_one();  // perhaps nobody can go on now
  place.wake.wait(lock, until);
  place.ready = nullptr;
  place.what = nullptr;
}

void Monitor::wait(Lock& lock, int rank, const std::string& what, const std::function<bool()>& ready) {
  block(lock, rank, what, ready, [&] { return stopped_ || ready(); });
  if (!ready()) throw Stopped();
}

void Monitor::wait_to_end(Lock& lock, int rank, const std::string& what, const std::function<bool()>& ready) {
  block(lock, rank, what, ready, ready);
}

void Monitor::changed() {
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
