// A heap of what will happen, by time and then by id. An event that was overtaken is not removed but
// recognised by its version when it reaches the top.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hw/units.h"

namespace moebius {

// `seconds` after `now`, rounded as time_from_seconds does. Throws run_error where clocks end, 292 years after
// their start: an input may ask for work that takes longer.
Time later_by_long(Time now, double seconds);
inline Time later(Time now, double seconds) {
  const double ns = seconds * 1e9;
  // Up to four seconds, while clocks are in the first half of their range, the same without a call: the
  // tolerance is 1e-6 ns there, and only what exceeds a whole number by no more goes down to it.
  if (!(ns >= 0 && ns < 0x1p32) || now.ns >= std::int64_t{1} << 62) return later_by_long(now, seconds);
  const auto whole = static_cast<std::int64_t>(ns);
  return {now.ns + whole + (ns - static_cast<double>(whole) > 1e-6)};
}

struct Event {
  Time time;
  std::uint64_t id = 0;       // orders equal times
  std::int32_t slot = 0;      // whose event
  std::uint32_t version = 0;  // of the slot when the event was made
};

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& top() const { return heap_.front(); }

  void push(const Event& event) {
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }

  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    heap_.pop_back();
  }

  // The time of the first event that `is_current` accepts; those before it are dropped. kForever when none is
  // left.
  template <class IsCurrent>
  Time next(IsCurrent is_current) {
    while (!empty() && !is_current(top())) pop();
    return empty() ? kForever : top().time;
  }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time != b.time ? a.time > b.time : a.id > b.id;
    }
  };

  std::vector<Event> heap_;
};

}  // namespace moebius
