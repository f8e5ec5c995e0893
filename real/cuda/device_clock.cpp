#include "real/cuda/device_clock.h"

#include <algorithm>

namespace moebius::cuda {

Anchor align(EventPool& events, Stream stream, HostClock::time_point start) {
  constexpr int kTries = 5;
  Anchor best;
  auto shortest = HostClock::duration::max();
  for (int i = 0; i < kTries; ++i) {
    const auto before = HostClock::now();
    EventRef event = events.recorded(stream);
    synchronise(event.get());
    const auto took = HostClock::now() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {event, {std::chrono::duration_cast<std::chrono::nanoseconds>(before + took / 2 - start).count()}};
  }
  return best;
}

Time DeviceClock::time_of(const EventRef& event) const {
  return {std::max<std::int64_t>(0, anchor_.time.ns + elapsed(anchor_.event.get(), event.get()).ns)};
}

void DeviceClock::move_to(const EventRef& event) {
  constexpr Time kFar{1000000000};  // a second: the float's step there is 60 ns
  const Time distance = elapsed(anchor_.event.get(), event.get());
  if (distance < kFar) return;
  anchor_.time.ns += distance.ns;
  anchor_.event = event;
}

}  // namespace moebius::cuda
