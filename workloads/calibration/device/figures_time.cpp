#include "workloads/calibration/device/figures_time.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "hw/stopwatch.h"

namespace moebius {

bool FiguresTime::spent() const {
  return seconds_since(start) > share * budget;
}

void FiguresTime::require_left() const {
  if (spent())
    throw input_error(
        fmt::format("--budget: expected more seconds for the launches, transfers and the disk that come "
                    "before the ops, found {:g}, which did not hold them",
                    budget));
}

}  // namespace moebius
