// Where the threads of the ranks wait. It knows at any moment who waits for what, so that a deadlock is a
// sentence, not a hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hw/units.h"

namespace moebius {

// Thrown in threads that wait when the run has been stopped; the reason is kept where it was stopped.
struct Stopped {};

class Monitor {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // Of the ranks from `first` on, so many. `one_at_a_time`: of their threads one runs, from one wait() to the
  // next; then it is another's turn.
  explicit Monitor(int ranks, bool one_at_a_time = false, int first = 0);

  std::mutex& mutex() { return mutex_; }

  // All of the following with the mutex held.

  // Blocks the rank's thread until ready() is true; throws Stopped when stop() was called before that. An
  // empty `what` is an idle rank.
  void wait(Lock& lock, int rank, const std::string& what, const std::function<bool()>& ready);
  // The same for what is sure to happen soon: a stop does not interrupt it.
  void wait_to_end(Lock& lock, int rank, const std::string& what, const std::function<bool()>& ready);
  // CPU time that the calling thread, the rank's own, has spent in the waits above, when they run one at a
  // time: falling asleep and waking up. Without the mutex.
  Time cpu_of_waiting(int rank) const { return places_[rank - first_]->cpu_of_waiting; }
  // Something that a ready() or the owner may look at has changed.
  void changed();
  void stop();
  bool stopped() const { return stopped_; }

  // The owner's thread waits for the next change, at most until `deadline` when there is one.
  void wait_for_change(Lock& lock, const std::chrono::steady_clock::time_point* deadline);
  bool rests() const;  // no rank can go on
  // When no rank can go on: what the ranks that are not idle wait for. Empty while any can, or when all are
  // idle.
  std::vector<std::string> stuck() const;

 private:
  struct Place {
    std::condition_variable wake;
    const std::function<bool()>* ready = nullptr;  // set while it waits
    const std::string* what = nullptr;
    Time cpu_of_waiting;
  };
  template <class Until>
  void block(Lock& lock, int rank, const std::string& what, const std::function<bool()>& ready,
             const Until& until);

  bool may_run(int rank) const { return !one_at_a_time_ || turn_ < 0 || turn_ == rank || stopped_; }
  void pass_turn(int rank);

  const bool one_at_a_time_;
  int turn_ = -1;  // the rank that runs; -1: none, or they all may
  std::mutex mutex_;
  const int first_;
  std::condition_variable owner_;
  std::vector<std::unique_ptr<Place>> places_;
  bool stopped_ = false;
};

}  // namespace moebius
