// Carries out iterations one by one on an executor, to learn what they take.
#pragma once

#include <cstdint>

#include "workloads/schedule/executor.h"
#include "workloads/schedule/recorder.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/lower.h"
#include "workloads/serving/system/step_surface.h"

namespace moebius {

class IterationTimer {
 public:
  // All outlive the timer. The executor has the layout of the job's plan and has been given nothing.
  IterationTimer(const ServingJob& job, const Layout& layout, Executor& executor, Recorder& recorder);

  // Seconds from the first op of the iteration to the end of the last.
  double seconds(const StepPoint& point);
  // The same of given batches, one a replica.
  double seconds(const std::vector<BatchPtr>& batches);

 private:
  const ServingJob& job_;
  const Layout& layout_;
  Executor& executor_;
  Recorder& recorder_;
  ServingShape shape_;
  IterationRoutes routes_;
  std::int32_t sequence_ = 0, step_ = 0;
  Time end_;
};

// Equal sequences of so many tokens and keys. Prompts stand whole where each token has no more keys than that
// leaves, in one sequence behind others' tokens where it has more.
Batch batch_of(const StepPoint& point, std::int32_t page_tokens);

}  // namespace moebius
