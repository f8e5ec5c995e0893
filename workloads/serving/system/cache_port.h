// A replica's port, or that of several which share a NIC, over which caches go one after the other: when it
// is taken.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/units.h"

namespace moebius {

class CachePort {
 public:
  // When all has gone that was to go.
  Time free() const { return taken_.empty() ? since_ : taken_.back().end; }
  // Not before `at`: the first moment at which it is idle, and at which it is taken (kForever: at none).
  Time idle_from(Time at) const;
  Time taken_from(Time at) const;
  void take(Time begin, Time end);

 private:
  struct Stretch {
    Time begin, end;
  };
  std::vector<Stretch> taken_;  // apart, in order: the last ones
  Time since_;                  // nothing is known to be idle before
};

// So much of `work` as passes from `begin` on and by `end` while both ports are idle; from here it has
// passed.
Time pass_meanwhile(CachePort& one, CachePort& other, Time begin, Time end, Time work);

}  // namespace moebius
