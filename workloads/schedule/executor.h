// The seam between what is to be done and who does it. A Workload gives submissions; an Executor simulates or
// executes them and reports spans to a Recorder. Neither knows the other's kind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hw/units.h"
#include "workloads/schedule/fragment.h"
#include "workloads/schedule/layout.h"

namespace moebius {

class Recorder;

struct Completion {
  std::int32_t sequence = 0;
  Time time;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual Time now() const = 0;
  virtual void submit(const Submission& submission) = 0;
  // Goes on until at least one submission completes or `until` is reached; returns what completed, by time,
  // then sequence. With nothing submitted and outstanding it returns at once. A deadlock is run_error that
  // names the ops that wait.
  virtual std::vector<Completion> wait(Time until) = 0;
  // Completes everything that was submitted; returns the end of the last op.
  virtual Time finish() = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual const Layout& layout() const = 0;
  // The next submission to issue at `now`, or nothing until something completes.
  virtual std::optional<Submission> next(Time now) = 0;
  virtual void completed(const Completion& completion) = 0;
  virtual bool done() const = 0;        // nothing will be issued any more
  virtual double progress() const = 0;  // 0..1, of what will be issued
  // When there may be more to issue though nothing completes, by the executor's clock; kForever: never.
  virtual Time due() const { return kForever; }
};

// Runs a workload on an executor until it is done and all that it issued has completed; every submission is
// reported to the recorder first, every completion to the workload. `tick`, when given, is called after each
// wait with the workload's progress.
Time execute(Workload& workload, Executor& executor, Recorder& recorder,
             const std::function<void(double)>& tick = {});

}  // namespace moebius
