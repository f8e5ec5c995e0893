// The clocks of boards at their power limit, as far as an executor has them: they remember the work of the
// last tens of milliseconds, so that what a piece of work takes depends on what ran before it.
#pragma once

#include <vector>

#include "hw/units.h"

namespace moebius {

// What a board has in mind of the work before, faded with the time since.
struct BoardPast {
  double clocked = 0, steady = 0;                // joule at full clock; at any
  double clocked_seconds = 0, full_seconds = 0;  // of work that follows the clock: as it ran; at full clock
  Time since;                                    // its last op ended
};

class BoardClocks {
 public:
  virtual ~BoardClocks() = default;
  // All work before. What ends from now on is kept in mind for repeat(). Nothing may be outstanding.
  virtual void forget() = 0;
  // Goes back to the clocks that boards would have now if what ended since forget(), or since the last
  // repeat(), had run without end, time after time. True when any of it would then have had another clock
  // than it had: it has to run again to be seen as it is. False: it ran as it does when repeated.
  virtual bool repeat() = 0;

  // Once repeat() has said so: the share of its time by which what ended would have taken longer or shorter.
  virtual double change() const = 0;
  // What boards have in mind now, for an executor of the same boards whose work follows.
  virtual std::vector<BoardPast> pasts() const = 0;
  // As forget(), but for this, where it is not empty. Of work that may be long, so that only its begin is
  // kept in mind for repeat(), and by the millisecond.
  virtual void begin(const std::vector<BoardPast>& pasts) = 0;
};

}  // namespace moebius
