// What an op waited for and what waited for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "viz/data/run_data.h"

namespace moebius::viz {

struct Place {
  std::size_t row = 0, slot = 0;
};

// Why an op began no sooner.
enum class Reason : std::uint8_t {
  kDependency,  // it depends on what ended
  kLane,        // its lane was taken
  kPeer,        // the other side of the send or receive was there only then
  kMoment,  // what ended when it began: read off the times, where the schedule does not say it (cores that
            // were held, peers that were not there, timelines of others)
};
std::string_view to_string(Reason reason);

struct Waited {
  Place place;
  Reason reason = Reason::kMoment;
};

// Of what the op depends on and of what stood in its lane before it, that which ended last. Where that ended
// before the op began and something else ended at that very moment, or where the timeline keeps no
// dependencies, or where a collective waited for its peers: the op that ended last before it began, whoever's
// it was; of several one of the same lane, then of the same rank. None at the beginning of a run.
std::optional<Waited> waited_for(const RunData& run, Place place);

// What depends on it: ops of its submission, then the first op of each submission that came after its own; at
// most `most`. Without dependencies in the timeline: those that began when it ended, at most one a row.
std::vector<Place> waited_for_it(const RunData& run, Place place, std::size_t most);

// The other side of a send or receive.
std::optional<Place> other_side(const RunData& run, Place place);

}  // namespace moebius::viz
