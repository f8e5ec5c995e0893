// What a span followed and what followed it, read off the times as workloads/schedule/critical_path.h does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viz/data/run_data.h"

namespace moebius::viz {

struct Place {
  std::size_t row = 0, slot = 0;
};

// Before an op stands the op that ended last before it began (a communication op: before its transfer began),
// whoever's it was; of several that ended together one of the same lane, then of the same rank. None at the
// beginning of a run.
std::optional<Place> waited_for(const RunData& run, Place place);

// Those that began at the moment when it ended, at most one a row and `most` in all: on a clock of events
// they waited for it or for something that ended with it.
std::vector<Place> began_at_end_of(const RunData& run, Place place, std::size_t most);

// The other side of a send or receive.
std::optional<Place> other_side(const RunData& run, Place place);

}  // namespace moebius::viz
