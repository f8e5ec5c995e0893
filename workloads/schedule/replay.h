// A schedule carried out on a clock of its own, from the times that its ops were measured to take: when each
// would have started and ended, had every rank a device to itself and every lane its own stream.
//
// - Lanes of a rank start their ops in order; an op starts when its lane is free, its dependencies have ended
//   and the submissions that its own comes after are complete. Lanes run side by side.
// - A collective begins when all members are there, and ends for all of them when the one that takes longest
//   is done: members work side by side, each on what it sends and gets.
// - A message is under way from the moment when it is sent, for as long as its sender works at it. The
//   receiver then works at it in turn, once it is there itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/schedule/executor.h"
#include "workloads/schedule/recorder.h"

namespace moebius {

// How long each op of each submission took.
class OpDurations {
 public:
  void set(std::int32_t sequence, std::int32_t op, Time duration);
  Time at(std::int32_t sequence, std::int32_t op) const;  // CHECKs that it was measured
  std::size_t submissions() const { return times_.size(); }
  const std::vector<Time>& of(std::int32_t sequence) const { return times_[sequence]; }

 private:
  std::vector<std::vector<Time>> times_;  // by sequence, op; negative: not measured
};

// Op by op the median of several executions of one schedule (of an even number: the lesser of the two in the
// middle). CHECKs that they are of the same ops.
OpDurations median_of(const std::vector<OpDurations>& runs);

// The executor of such a clock. Layout (one class for each rank) and recorder outlive it. A schedule whose
// ops wait for each other is run_error in wait().
std::unique_ptr<Executor> make_replay(const Layout& layout, Recorder& recorder, OpDurations durations);

}  // namespace moebius
