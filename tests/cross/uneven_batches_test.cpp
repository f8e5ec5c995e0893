// Replicas that take unequal numbers of microbatches train as one rank that takes them all.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"

namespace moebius {
namespace {

TrainingJob uneven_job() {
  TrainingJob job = all_experts_job(AttentionKind::kGqa);
  job.model.layers = 4;
  job.workload.global_batch = 10;
  return job;
}

}  // namespace

TEST_CASE("replicas with unequal numbers of microbatches have the losses of one rank") {
  TrainingJob changed = uneven_job();
  changed.plan.dp = 3;
  changed.plan.microbatches = {6, 1, 3};
  require_same_losses(uneven_job(), changed);
  changed.plan.zero = 1;
  changed.plan.overlap_gradients = true;
  require_same_losses(uneven_job(), changed);
}

TEST_CASE("pipelines with unequal numbers of microbatches have the losses of one rank") {
  for (const PipelineKind kind :
       {PipelineKind::k1F1B, PipelineKind::kGpipe, PipelineKind::kZbH1, PipelineKind::kZbV}) {
    TrainingJob changed = uneven_job();
    changed.plan.pp = changed.plan.dp = 2;
    changed.plan.schedule = kind;
    changed.plan.microbatches = {7, 3};
    require_same_losses(uneven_job(), changed);
  }
}

TEST_CASE("expert groups inside replicas of equal numbers have the losses of one rank") {
  TrainingJob changed = uneven_job();
  changed.plan.dp = 4;
  changed.plan.ep = 2;
  changed.plan.microbatches = {4, 4, 1, 1};
  require_same_losses(uneven_job(), changed);
}

}  // namespace moebius
