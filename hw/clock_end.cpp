#include "hw/clock_end.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {

void clocks_end(Time now, double seconds) {
  throw run_error(
      fmt::format("what begins at {} takes {:.3g} s more, but simulated time ends after 292 years",
                  to_text(now), seconds));
}

Time after_seconds(Time now, double seconds) {
  if (static_cast<double>(now.ns) + seconds * 1e9 >= 0x1p63) clocks_end(now, seconds);
  return now + time_from_seconds(seconds);
}

}  // namespace moebius
