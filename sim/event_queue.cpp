#include "sim/event_queue.h"

#include "hw/clock_end.h"

namespace moebius {

Time later_by_long(Time now, double seconds) {
  return after_seconds(now, seconds);
}

}  // namespace moebius
