// Tokens that a loader has brought are those that a forward pass reads by itself.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {
TEST_CASE("batches read ahead train to the bit like batches that are there") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kGpipe, PipelineKind::kInterleaved,
                                  PipelineKind::kZbV, PipelineKind::kDualPipe, PipelineKind::kDualPipeV}) {
    TrainingJob job = deep_job();
    job.plan.pp = 2;
    job.plan.schedule = kind;
    job.plan.chunks = kind == PipelineKind::kInterleaved ? 2 : 1;
    const std::vector<double> expected = exact_losses(job);
    for (const int ahead : {1, 3}) {
      job.workload.input_ahead = ahead;
      CAPTURE(static_cast<int>(kind), ahead);
      CHECK(exact_losses(job) == expected);
    }
  }
}

TEST_CASE("replicas of unequal numbers read each part of the batch once ahead of use") {
  TrainingJob job = deep_job();
  job.plan.dp = 2;
  job.plan.microbatches = {6, 2};
  const std::vector<double> expected = exact_losses(job);
  job.workload.input_ahead = 2;
  CHECK(exact_losses(job) == expected);
}

}  // namespace moebius
