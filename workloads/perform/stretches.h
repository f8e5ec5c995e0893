// A training run in stretches: from one checkpoint to the next, or to the end of the step in which Ctrl-C
// came, to whichever of the processes that share it.
#pragma once

#include <optional>
#include <string>

#include "workloads/checkpoint/interruption.h"
#include "workloads/job.h"
#include "workloads/perform/perform.h"

namespace moebius {

class Stretches {
 public:
  // Both outlive it. Of a run that is not saved there is one stretch, and Ctrl-C ends it at once.
  Stretches(Job& job, const StartedExecutor& engine);

  void look();   // now and then while a stretch runs: after Ctrl-C no further step begins
  bool go_on();  // when all that was submitted has completed: saves; false: that was the last one
  // How to go on with a run that was interrupted, whose scenario then has the steps that were done; else
  // empty.
  const std::string& interrupted() const { return interrupted_; }

 private:
  void plan_next();
  bool stops() const;  // this process was interrupted, or one of those that share the run

  Job& job_;
  const StartedExecutor& engine_;
  std::optional<Interruption> interruption_;
  std::string interrupted_;
};

}  // namespace moebius
