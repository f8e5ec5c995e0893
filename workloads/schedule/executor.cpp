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
  const auto wait = [&](Time until) {
    const std::vector<Completion> completions = executor.wait(until);
    for (const Completion& completion : completions) workload.completed(completion);
    outstanding -= static_cast<std::int64_t>(completions.size());
    if (tick) tick(workload.progress());
  };
  while (!workload.done()) {
    outstanding += issue(workload, executor, recorder);
    if (workload.done()) break;
    CHECK(outstanding > 0, fmt::format("the workload stalls at {} of 1", workload.progress()));
    wait(workload.due());
  }
  // Everything is issued; what is still under way ends here, and the workload hears of it too.
  while (outstanding > 0) wait(kForever);
  return executor.finish();
}

}  // namespace moebius
