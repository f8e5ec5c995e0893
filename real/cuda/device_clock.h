// Times of a device's events on the host's clock.
#pragma once

#include <chrono>

#include "real/cuda/device_memory.h"

namespace moebius::cuda {

using HostClock = std::chrono::steady_clock;

// An event and when it happened, counted from the start of the run.
struct Anchor {
  EventRef event;
  Time time;
};

// Records an event on an idle stream and reads the host's clock around it, a few times; the closest pair
// counts. The event is later than its time by less than half of what it took: some ten microseconds.
Anchor align(EventPool& events, Stream stream, HostClock::time_point start);

// One reader's clock. CUDA tells differences as a float of milliseconds, which gets coarse with the distance,
// so that the anchor moves along.
class DeviceClock {
 public:
  explicit DeviceClock(Anchor anchor) : anchor_(std::move(anchor)) {}
  Time time_of(const EventRef& event) const;  // completed; not before zero
  void move_to(const EventRef& event);        // a completed one

 private:
  Anchor anchor_;
};

}  // namespace moebius::cuda
