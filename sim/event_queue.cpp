#include "sim/event_queue.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

Time later_by_long(Time now, double seconds) {
  if (static_cast<double>(now.ns) + seconds * 1e9 >= 0x1p63) {
    throw run_error(
        fmt::format("what begins at {} takes {:.3g} s more, but simulated time ends after 292 years",
                    to_text(now), seconds));
  }
  return now + time_from_seconds(seconds);
}

}  // namespace moebius
