// The link between users and a pool that stands elsewhere: prompts go there as text, tokens come back as they
// are made, caches pass where the other phase is on this side. What goes one way goes one after the other.
#pragma once

#include <algorithm>

#include "hw/clock_end.h"
#include "hw/units.h"

namespace moebius {

struct WanRules {
  Time latency;             // of the first byte, one way
  ByteRate rate;            // each way
  double input_bytes = 4;   // of a prompt's token as text
  double output_bytes = 4;  // of a token that comes back
};

// One way of a link.
class WanPipe {
 public:
  // When so many bytes that are there at `now` have come out at the other end.
  Time pass(Time now, double bytes, const WanRules& rules) {
    free_ = after_seconds(std::max(free_, now), Bytes{bytes} / rules.rate);
    bytes_ += bytes;
    return later(free_, rules.latency);
  }
  double bytes() const { return bytes_; }

 private:
  Time free_;
  double bytes_ = 0;
};

struct WanFigures {
  double in_bytes = 0, out_bytes = 0, cache_bytes = 0;
};

}  // namespace moebius
