// Where weights are gathered, and in which format, changes nothing of what a run computes.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"

namespace moebius {
namespace {

// Three layers, so that there is something before and after a group of layers.
TrainingJob dp_sharded_job(const Model& model = full_model()) {
  TrainingJob job = small_job(model);
  job.plan.dp = 4;
  job.plan.ep = 2;
  job.workload.global_batch = 8;
  job.workload.steps = 3;
  return job;
}

TrainingJob sharded_fp8_job(Scaling scaling) {
  TrainingJob job = dp_sharded_job();
  job.plan.gemm = DType::kFp8;
  job.plan.scaling = scaling;
  job.plan.half_weights = true;
  return job;
}

}  // namespace

TEST_CASE("weights that every rank casts to FP8 where it has gathered them train like whole ones") {
  for (const Scaling scaling : {Scaling::kBlock, Scaling::kTensor, Scaling::kMicro}) {
    for (const ShardBuffers buffers : {ShardBuffers::kInPlace, ShardBuffers::kCopied}) {
      require_same_losses(sharded_fp8_job(scaling),
                          [&](TrainingJob& job) { job.plan.zero = 3, job.plan.shard_buffers = buffers; });
    }
  }
}

// Whole weights start in 8 bits, sharded ones in BF16, from which they are cast: an element may fall on the
// other side of a border of 2^-4 by 2^-9 of itself, one in some tens. From the first update on both are cast
// from what Adam wrote in BF16.
TEST_CASE("with all rounding FP8 losses of sharded weights differ by what starting in BF16 does") {
  for (const Scaling scaling : {Scaling::kBlock, Scaling::kTensor, Scaling::kMicro}) {
    TrainingJob job = sharded_fp8_job(scaling);
    const std::vector<double> expected = three_losses<float>(job, false);
    job.plan.zero = 3;
    const std::vector<double> found = three_losses<float>(job, false);
    for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(2e-3));
  }
}

TEST_CASE(
    "with all rounding how far ahead FP8 weights are gathered, and what is computed again, changes no bit") {
  TrainingJob job = sharded_fp8_job(Scaling::kTensor);
  job.plan.zero = 3;
  const std::vector<double> expected = three_losses<float>(job, false);
  job.plan.prefetch = 2;
  job.plan.group_layers = 2;
  CHECK(three_losses<float>(job, false) == expected);
  job.plan.recompute = RecomputePolicy::kFull;
  CHECK(three_losses<float>(job, false) == expected);
}

TEST_CASE("FP8 weights sharded over pipeline stages and tensor-parallel ranks train like whole ones") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kZbH1}) {
    TrainingJob job = sharded_fp8_job(Scaling::kTensor);
    job.model = small_model(AttentionKind::kGqa);
    job.plan.schedule = kind;
    job.plan.pp = job.plan.tp = job.plan.dp = job.plan.ep = 2;
    job.plan.sequence_parallel = true;
    require_same_losses(job, [](TrainingJob& sharded) { sharded.plan.zero = 3, sharded.plan.tp_chunks = 2; });
  }
}

// The same weights, gathered before the next step's first pass instead of after the update.
TEST_CASE("updated weights that are gathered beside the next forward pass train to the bit like others") {
  for (const int zero : {1, 2}) {
    for (const bool low : {false, true}) {
      TrainingJob job = low ? sharded_fp8_job(Scaling::kTensor) : dp_sharded_job();
      job.plan.zero = zero;
      const std::vector<double> late = three_losses<float>(job, false);
      job.plan.overlap_weights = true;
      const std::vector<double> beside = three_losses<float>(job, false);
      CHECK(late.back() != late.front());
      if (!low) CHECK(beside == late);
      // The first step casts what the other one starts from.
      for (int step = 0; step < 3; ++step) CHECK(beside[step] == Approx(late[step]).epsilon(2e-3));
    }
  }
}

TEST_CASE("weights gathered beside the next forward pass are the same whatever else stands in host memory") {
  for (const int zero : {1, 2}) {
    TrainingJob job = dp_sharded_job();
    job.plan.zero = zero;
    job.plan.overlap_weights = true;
    const std::vector<double> here = three_losses<float>(job, false);
    job.plan.offload.activations = true;
    CHECK(three_losses<float>(job, false) == here);
    job.plan.offload.optimizer = true;
    job.plan.offload.gradients = zero == 2;
    CHECK(three_losses<float>(job, false) == here);
  }
}

TEST_CASE("stages that gather updated weights in their first pass have the loss of one rank") {
  for (const PipelineKind kind :
       {PipelineKind::k1F1B, PipelineKind::kInterleaved, PipelineKind::kDualPipeV}) {
    TrainingJob job = deep_job(true);
    job.workload.global_batch = 16;
    TrainingJob changed = job;
    changed.plan.schedule = kind;
    changed.plan.pp = 2;
    changed.plan.chunks = kind == PipelineKind::kInterleaved ? 2 : 1;
    changed.plan.dp = changed.plan.ep = 2;
    changed.plan.zero = 1;
    changed.plan.overlap_weights = true;
    require_same_losses(job, changed);
  }
}

}  // namespace moebius
