// Kernels that the host has to launch, one after the other: what is not launched yet cannot start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/event_queue.h"
#include "workloads/schedule/fragment.h"

namespace moebius {

// The host launches the submissions of a class in order, as early as they come; it does not wait for the
// device before it goes on, but (LaunchMode::kEager) where it reads what the device found. Copy engines and
// message rings need no launch, but a framework's call. What is captured in a graph (Fragment::captured) is
// launched with the graph's first op.
class Launches {
 public:
  struct Launched {
    std::int32_t slot = 0;  // as given to add()
    std::int32_t op = -1;   // with it all of the graph that begins there; -1: the whole fragment
  };

  // `launch`: of one kernel, or of one captured graph; of a framework's host one call (host_calls.h).
  Launches(std::size_t classes, Time launch) : launch_(launch), hosts_(classes) {}

  // How many of the fragment's launches op `op` waits for.
  static int launches_of(const Fragment& fragment, std::size_t op);
  // Whether the host launches op `op` only once the device has come to it.
  static bool reads_counts(const Fragment& fragment, std::size_t op);

  // `fragment` stays, and `slot` is its own, until its last launch has ended.
  void add(const Fragment& fragment, int rank_class, std::int32_t slot, Time now);
  // `op` waits for nothing but its launch, and the host reads what came before it.
  void reached(int rank_class, Launched op, Time now);
  Time next_event() const { return events_.empty() ? kForever : events_.top().time; }
  // The next launch that has ended by `now`; false when there is none.
  bool pop(Time now, Launched& launched);

 private:
  struct Eager {  // a submission that the host launches op by op
    const Fragment* fragment = nullptr;
    std::int32_t slot = 0, next = 0;
    std::int32_t reached = -1;  // the op that the device came to last
  };
  struct Host {
    Time free;  // when it can launch again
    std::deque<Eager> eager;
    bool launching = false;
  };

  Time time_of(const Fragment& fragment, std::size_t index) const;
  void push(Host& host, Launched launched, Time launch, Time now);
  void go_on(int rank_class, Time now);

  Time launch_;
  std::vector<Host> hosts_;                  // by class
  std::vector<std::int32_t> class_of_slot_;  // of submissions that are launched op by op; -1: others
  EventQueue events_;
  std::uint64_t next_id_ = 0;
};

}  // namespace moebius
