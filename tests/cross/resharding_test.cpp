// Gradients that gather whole over the microbatches of a step, and weights that stay gathered between passes,
// change nothing of what a run computes; behind a step nothing of either is left (three_losses()).
#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"

namespace moebius {
namespace {

// Two microbatches of each of four replicas.
TrainingJob sharded_job(int zero = 3) {
  TrainingJob job = small_job(full_model());
  job.plan.dp = 4;
  job.plan.ep = 2;
  job.plan.zero = zero;
  job.workload.global_batch = 8;
  job.workload.steps = 3;
  return job;
}

struct Kept {
  int regather;
  bool free_after_backward;
};

void keep(const Kept& kept, TrainingPlan& plan) {
  plan.regather = kept.regather;
  plan.free_after_backward = kept.free_after_backward;
}

// Whole until the backward pass, in copies over two ranks, whole until the last one.
const std::vector<Kept> kAllKept{{1, true}, {2, true}, {1, false}};

}  // namespace

TEST_CASE("gradients that gather whole train like those that are summed in every microbatch") {
  for (const int zero : {2, 3}) {
    for (const Accumulation how : {Accumulation::kWhole, Accumulation::kWholeBf16}) {
      for (const ShardBuffers buffers :
           {ShardBuffers::kInPlace, ShardBuffers::kCopied, ShardBuffers::kFlat}) {
        CAPTURE(zero, static_cast<int>(how), static_cast<int>(buffers));
        require_same_losses(sharded_job(zero), [&](TrainingJob& job) {
          job.plan.accumulation = how;
          job.plan.shard_buffers = buffers;
        });
      }
    }
  }
}

TEST_CASE("whole gradients train alike in copies of shards, from kernels that add, and on the host") {
  const auto same = [](const auto& change) {
    require_same_losses(sharded_job(), [&](TrainingJob& job) {
      job.plan.accumulation = Accumulation::kWhole;
      change(job);
    });
  };
  same([](TrainingJob& job) { job.plan.shard = 2; });
  same([](TrainingJob& job) { job.plan.separate_accumulation = true; });
  same([](TrainingJob& job) { job.plan.offload = {true, true, true, true}; });
}

// Gradients of norms are summed over the tensor group once, before the shards.
TEST_CASE("whole gradients beside sequence parallelism train alike") {
  TrainingJob job = sharded_job();
  job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  require_same_losses(job, [](TrainingJob& whole) { whole.plan.accumulation = Accumulation::kWhole; });
}

TEST_CASE("in BF16 whole gradients are rounded once a microbatch more, and the losses are near") {
  TrainingJob job = sharded_job();
  const std::vector<double> expected = three_losses<float>(job, false);
  job.plan.accumulation = Accumulation::kWholeBf16;
  const std::vector<double> found = three_losses<float>(job, false);
  for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-2));
}

TEST_CASE("weights that stay gathered between passes change no bit") {
  const std::vector<double> expected = three_losses<float>(sharded_job(), false);
  for (const Kept& kept : kAllKept) {
    for (const ShardBuffers buffers : {ShardBuffers::kInPlace, ShardBuffers::kCopied}) {
      CAPTURE(kept.regather, kept.free_after_backward, static_cast<int>(buffers));
      TrainingJob job = sharded_job();
      keep(kept, job.plan);
      job.plan.shard_buffers = buffers;
      CHECK(three_losses<float>(job, false) == expected);
    }
  }
}

TEST_CASE("weights that stay gathered change no bit beside recomputation, host memory and 8-bit products") {
  const auto same = [](const auto& change) {
    TrainingJob base = sharded_job();
    change(base);
    const std::vector<double> expected = three_losses<float>(base, false);
    for (const Kept& kept : kAllKept) {
      CAPTURE(kept.regather, kept.free_after_backward);
      TrainingJob job = base;
      keep(kept, job.plan);
      CHECK(three_losses<float>(job, false) == expected);
    }
  };
  same([](TrainingJob& job) { job.plan.recompute = RecomputePolicy::kFull; });
  same([](TrainingJob& job) { job.plan.offload = {true, true, true, true}; });
  same([](TrainingJob& job) { job.plan.group_layers = 2; });
  same([](TrainingJob& job) { job.plan.accumulation = Accumulation::kWhole; });
  same([](TrainingJob& job) { job.plan.gemm = DType::kFp8, job.plan.half_weights = true; });
}

TEST_CASE("experts of which two neighbours keep a copy train alike") {
  TrainingJob job = sharded_job();
  job.plan.ep = 1;
  const std::vector<double> expected = three_losses<float>(job, false);
  keep({2, true}, job.plan);
  CHECK(three_losses<float>(job, false) == expected);
}

// Stages of a rank whose first and last share an embedding, which stays with neither between passes.
TEST_CASE("stages with an embedding in common train alike with whole gradients and weights that stay") {
  for (const PipelineKind kind : {PipelineKind::kInterleaved, PipelineKind::kZbV}) {
    TrainingJob job = deep_job(true);
    job.plan.pp = job.plan.dp = job.plan.ep = 2;
    job.plan.schedule = kind;
    job.plan.chunks = kind == PipelineKind::kInterleaved ? 2 : 1;
    job.plan.zero = 3;
    for (const Kept& kept : {Kept{1, true}, Kept{1, false}}) {
      CAPTURE(static_cast<int>(kind), kept.free_after_backward);
      require_same_losses(job, [&](TrainingJob& whole) {
        keep(kept, whole.plan);
        whole.plan.accumulation = Accumulation::kWhole;
      });
    }
  }
}

}  // namespace moebius
