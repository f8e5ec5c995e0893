// How far a job is, whatever has happened to it: work done, what of it is saved where, and where its time
// went.
#pragma once

#include <functional>
#include <vector>

#include "workloads/cluster/checkpoints.h"
#include "workloads/cluster/cluster_run.h"

namespace moebius {

// Runs in stretches without events. In a stretch it computes for `interval`, stands still for a checkpoint,
// and so on.
class JobProgress {
 public:
  JobProgress(const CheckpointPlan& plan, const CheckpointCosts& costs, Time interval);

  void begin(Time now);  // a stretch
  // 1: as fast as ever. Its interval between checkpoints goes on from where it is.
  void change_speed(Time now, double factor);
  // While it stands still: from here it runs so, on other nodes perhaps.
  void set_costs(const CheckpointCosts& costs, Time interval, double factor);
  double factor() const { return factor_; }
  // Ends the stretch: time, work and what is saved are those of `now`.
  void stop(Time now);
  bool running() const { return running_; }
  Time done() const { return done_; }
  // When `work` will be done, if nothing happens; far after any end where that does not fit into a Time.
  Time end_of(Time work) const;

  // After stop(): back to what is left. Time that was productive was not.
  void back_to_storage();
  void back_to_peers();     // or to storage, whichever is later
  void back_to(Time done);  // at most what is done
  void back_by(Time part);  // but not behind what storage or peers hold
  // Back to the last state in storage of not more than so much work: what came later is wrong.
  void back_before(Time done);
  void save_now();  // what is done is in storage, and where peers take copies they have it too
  void forget_peers() { in_peers_ = {}; }  // its nodes are others, or others hold its parts
  // What it goes on with can be had from peers' memory; else storage alone has it.
  bool peers_hold_it() const { return in_peers_.ns > 0 && in_peers_ >= done_; }

  void add(TimeItem item, Time time) { course_.items[static_cast<int>(item)] = course_.of(item) + time; }
  JobCourse& course() { return course_; }

 private:
  Time cycle() const { return interval_ + costs_.stall; }
  void store(std::int64_t count, const std::function<Time(std::int64_t)>& work_of);
  void thin_out();
  void drop_last();
  void keep(Time elapsed, Time done_before);

  CheckpointPlan plan_;
  CheckpointCosts costs_;
  Time interval_;
  bool running_ = false;
  Time begun_, done_;  // of the stretch; work done before it
  double factor_ = 1;
  Time phase_;                    // of the cycle in which the stretch began, that lay before it
  Time in_peers_;                 // work that peers hold
  std::vector<Time> stored_{{}};  // work that storage holds, the last one last; the beginning always
  std::size_t settled_ = 1;       // of them, from the first on, that stay when later ones come
  JobCourse course_;
};

}  // namespace moebius
