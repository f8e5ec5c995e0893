// Whatever the schedule of a pipeline, the numbers are those of one rank that holds all stages.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"
#include "workloads/training/pipeline/pipeline.h"

namespace moebius {
namespace {

TrainingJob on_ranks(TrainingJob job, PipelineKind kind, int ranks = 2) {
  job.plan.pp = ranks;
  job.plan.schedule = kind;
  job.plan.chunks = kind == PipelineKind::kInterleaved ? 2 : 1;
  return job;
}

TrainingJob dense_on_two() {
  TrainingJob job = dense_job();
  job.model.layers = 4;
  job.workload.global_batch = 8;
  job.plan.tp = 2;
  return job;
}

}  // namespace

TEST_CASE("interleaved stages have the loss of one rank") {
  for (const bool tied : {false, true})
    require_same_losses(deep_job(tied), on_ranks(deep_job(tied), PipelineKind::kInterleaved));
}

TEST_CASE("stages of the embedding or the head alone have the loss of one rank") {
  for (const bool tied : {false, true}) {
    for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kInterleaved, PipelineKind::kZbV}) {
      TrainingJob thin = on_ranks(deep_job(tied), kind, kind == PipelineKind::k1F1B ? 4 : 2);
      thin.plan.layers = {0, 2, 2, 0};
      require_same_losses(deep_job(tied), thin);
    }
  }
}

TEST_CASE("weights' gradients that are late have the loss of one rank") {
  require_same_losses(deep_job(), on_ranks(deep_job(), PipelineKind::kZbH1));
  require_same_losses(deep_job(true), on_ranks(deep_job(true), PipelineKind::kZbV));
}

TEST_CASE("late gradients of recomputed and quantised operands are those of a whole backward pass") {
  for (const RecomputePolicy policy : {RecomputePolicy::kSelective, RecomputePolicy::kFull}) {
    TrainingJob job = deep_job();
    job.plan.recompute = policy;
    if (policy == RecomputePolicy::kSelective)
      job.plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kMlaUp, RecomputeOp::kActivation};
    job.plan.gemm = job.plan.dispatch = DType::kFp8;
    job.plan.fused_quantise = true;
    require_same_losses(job, on_ranks(job, PipelineKind::kZbV));
  }
}

TEST_CASE("both directions of DualPipe have the loss of one rank") {
  for (const bool tied : {false, true})
    require_same_losses(deep_job(tied), on_ranks(deep_job(tied), PipelineKind::kDualPipe));
  require_same_losses(deep_job(true), on_ranks(deep_job(true), PipelineKind::kDualPipeV));
}

TEST_CASE("four ranks of DualPipe with sharded states and early reductions have the loss of one rank") {
  TrainingJob changed = on_ranks(deep_job(), PipelineKind::kDualPipe, 4);
  changed.plan.zero = 1;
  changed.plan.overlap_gradients = true;
  require_same_losses(deep_job(), changed);
}

TEST_CASE("pipelines of expert-parallel replicas have the loss of one rank") {
  for (const PipelineKind kind : {PipelineKind::kInterleaved, PipelineKind::kDualPipe, PipelineKind::kZbV}) {
    TrainingJob job = deep_job();
    job.workload.global_batch = 16;
    TrainingJob changed = on_ranks(job, kind);
    changed.plan.dp = 2;
    changed.plan.ep = 2;
    changed.plan.zero = 1;
    changed.plan.overlap_gradients = true;
    require_same_losses(job, changed);
  }
}

TEST_CASE("pairs of 1F1B and of interleaved stages have the loss of one rank") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kInterleaved}) {
    TrainingJob changed = on_ranks(deep_job(), kind);
    changed.plan.overlap_two_batch = true;
    require_same_losses(deep_job(), changed);
  }
}

TEST_CASE("tensor-parallel ranks of a split backward pass have the loss of one rank") {
  TrainingJob job = dense_on_two();
  for (const bool sequence_parallel : {false, true}) {
    job.plan.sequence_parallel = sequence_parallel;
    require_same_losses(job, on_ranks(job, PipelineKind::kZbV));
  }
}

TEST_CASE("messages that block, and of which each rank sends a share, have the loss of one stage") {
  const TrainingJob job = dense_on_two();
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kInterleaved, PipelineKind::kDualPipe}) {
    TrainingJob changed = on_ranks(job, kind);
    changed.plan.blocking_messages = changed.plan.cut_messages = true;
    require_same_losses(job, changed);
  }
}

}  // namespace moebius
