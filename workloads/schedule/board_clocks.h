// The clocks of boards at their power limit, as far as an executor has them: they remember the work of the
// last tens of milliseconds, so that what a piece of work takes depends on what ran before it.
#pragma once

namespace moebius {

class BoardClocks {
 public:
  virtual ~BoardClocks() = default;
  // All work before. What ends from now on is kept in mind for repeat(). Nothing may be outstanding.
  virtual void forget() = 0;
  // Goes back to the clocks that boards would have now if what ended since forget(), or since the last
  // repeat(), had run without end, time after time. True when any of it would then have had another clock
  // than it had: it has to run again to be seen as it is. False: it ran as it does when repeated.
  virtual bool repeat() = 0;
};

}  // namespace moebius
