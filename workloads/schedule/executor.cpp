#include "workloads/schedule/executor.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "workloads/schedule/recorder.h"

namespace moebius {

namespace {

// Issues all that the workload has to give now; returns how many.
std::int64_t issue(Workload& workload, Executor& executor, Recorder& recorder) {
  std::int64_t issued = 0;
  while (std::optional<Submission> submission = workload.next(executor.now())) {
    recorder.submitted(*submission);
    executor.submit(*submission);
    ++issued;
  }
  return issued;
}

}  // namespace

Time execute(Workload& workload, Executor& executor, Recorder& recorder,
             const std::function<void(double)>& tick) {
  std::int64_t outstanding = 0;
  while (!workload.done()) {
    outstanding += issue(workload, executor, recorder);
    if (workload.done()) break;
    CHECK(outstanding > 0, fmt::format("the workload stalls at {} of 1", workload.progress()));
    for (const Completion& completion : executor.wait(workload.due())) {
      workload.completed(completion);
      --outstanding;
    }
    if (tick) tick(workload.progress());
  }
  // Everything is issued; what is still under way ends here.
  return executor.finish();
}

}  // namespace moebius
