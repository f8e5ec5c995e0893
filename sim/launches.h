// Kernels that the host has to launch, one after the other: what is not launched yet cannot start.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/event_queue.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

// The host launches the submissions of a class in order, as early as they come; it does not wait for the
// device before it goes on. Copy engines and message rings need no launch.
class Launches {
 public:
  struct Launched {
    std::int32_t slot = 0;  // as given to add()
    std::int32_t op = -1;   // -1: the whole fragment
  };

  // `launch`: of one kernel, or of one captured graph.
  Launches(std::size_t classes, Time launch) : launch_(launch), free_(classes) {}

  // How many of the fragment's launches op `op` waits for.
  static int launches_of(const Fragment& fragment, const Op& op);

  void add(const Fragment& fragment, int rank_class, std::int32_t slot, Time now);
  Time next_event() const { return events_.empty() ? kForever : events_.top().time; }
  // The next launch that has ended by `now`; false when there is none.
  bool pop(Time now, Launched& launched);

 private:
  void push(int rank_class, Launched launched, Time now);

  Time launch_;
  std::vector<Time> free_;  // by class: when the host can launch again
  EventQueue events_;
  std::uint64_t next_id_ = 0;
};

}  // namespace moebius
