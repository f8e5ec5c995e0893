// Where the state of a training run stands, and what of it is computed again, changes nothing of what it
// computes.
#include <vector>

#include <catch2/catch.hpp>

#include "real/initial_values.h"
#include "tests/cross/exact_losses.h"

namespace moebius {
namespace {

// Three layers, so that there is something before and after a group of layers.
TrainingJob state_job() {
  TrainingJob job = small_job(full_model());
  job.plan.dp = 4;
  job.plan.ep = 2;
  job.workload.global_batch = 8;
  job.workload.steps = 3;
  return job;
}

// With all rounding of a BF16 plan: to the bit.
template <class Change>
void require_equal_losses(TrainingJob job, const Change& change) {
  const std::vector<double> expected = three_losses<float>(job, false);
  change(job);
  CHECK(three_losses<float>(job, false) == expected);
}

}  // namespace

TEST_CASE("sharded gradients and parameters train like replicated ones") {
  for (const int zero : {1, 2, 3}) {
    require_same_losses(state_job(), [&](TrainingJob& job) { job.plan.zero = zero; });
  }
}

TEST_CASE("sharded state trains alike on tensor-parallel ranks and over pipeline stages") {
  TrainingJob job = small_job(small_model(AttentionKind::kGqa));
  job.workload.steps = 3;
  job.plan.dp = job.plan.pp = job.plan.tp = job.plan.ep = 2;
  job.plan.sequence_parallel = true;
  for (const int zero : {2, 3}) {
    require_same_losses(job, [&](TrainingJob& sharded) { sharded.plan.zero = zero; });
  }
}

TEST_CASE("an embedding that two stages share trains alike when it is sharded") {
  TrainingJob job = small_job(small_model(AttentionKind::kGqa));
  job.model.tied_embeddings = true;
  job.workload.steps = 3;
  job.plan.dp = job.plan.pp = 2;
  require_same_losses(job, [](TrainingJob& sharded) { sharded.plan.zero = 3; });
}

TEST_CASE("copies between tensors and buffers of shards change no loss") {
  for (const ShardBuffers buffers : {ShardBuffers::kFlat, ShardBuffers::kCopied}) {
    require_same_losses(state_job(),
                        [&](TrainingJob& job) { job.plan.zero = 3, job.plan.shard_buffers = buffers; });
  }
}

TEST_CASE("shards in two copies train like shards in one") {
  for (const int zero : {1, 2, 3}) {
    require_same_losses(state_job(), [&](TrainingJob& job) { job.plan.zero = zero, job.plan.shard = 2; });
  }
}

// Sums of norms over the tensor group come before what the sums into shards read, copies of it among that.
TEST_CASE("shards beside sequence parallelism train alike, whatever they are copied through") {
  TrainingJob base = state_job();
  base.plan.tp = 2;
  base.plan.sequence_parallel = true;
  for (const ShardBuffers buffers : {ShardBuffers::kInPlace, ShardBuffers::kCopied, ShardBuffers::kFlat})
    for (const int zero : {2, 3})
      require_same_losses(base, [&](TrainingJob& job) {
        job.plan.zero = zero;
        job.plan.shard_buffers = buffers;
      });
}

TEST_CASE("how far ahead parameters are gathered changes no bit") {
  TrainingJob job = state_job();
  job.plan.zero = 3;
  for (const int prefetch : {0, 2}) {
    require_equal_losses(job, [&](TrainingJob& ahead) { ahead.plan.prefetch = prefetch; });
  }
  require_equal_losses(job, [](TrainingJob& grouped) { grouped.plan.group_layers = 2; });
}

TEST_CASE("state in host memory changes no bit") {
  require_equal_losses(state_job(), [](TrainingJob& job) { job.plan.offload.optimizer = true; });
  require_equal_losses(state_job(), [](TrainingJob& job) { job.plan.offload.parameters = true; });
  require_equal_losses(state_job(), [](TrainingJob& job) { job.plan.offload.activations = true; });
  TrainingJob sharded = state_job();
  sharded.plan.zero = 2;
  require_equal_losses(sharded, [](TrainingJob& job) { job.plan.offload.gradients = true; });
  sharded.plan.zero = 3;
  require_equal_losses(sharded, [](TrainingJob& job) { job.plan.offload = {true, true, true, true}; });
}

// The masters begin where the weights do, though their update sees copies of them, which have no names.
TEST_CASE("biases in host memory that a run starts from change no bit") {
  TrainingJob job = small_job(with_biases(small_model(AttentionKind::kGqa)));
  job.plan.dp = 2;
  job.workload.steps = 3;
  HostOptions options;
  options.weights = [](const Tensor& parameter) {
    if (!is_bias(parameter)) return initial_values(parameter, 1);
    return std::vector<double>(static_cast<std::size_t>(parameter.elements()), 0.25);
  };
  const auto losses = [&](const TrainingJob& of) {
    SmallRun<float> run(of, options);
    const HostExecutor<float>& executor = run.run();
    return std::vector<double>{executor.loss(0), executor.loss(1), executor.loss(2)};
  };
  for (const int zero : {0, 1, 3}) {
    job.plan.zero = zero;
    job.plan.offload = {};
    const std::vector<double> expected = losses(job);
    job.plan.offload.parameters = true;
    CHECK(losses(job) == expected);
    job.plan.offload.optimizer = true;
    CHECK(losses(job) == expected);
  }
}

TEST_CASE("activations in host memory change no bit over pipeline stages in FP8") {
  TrainingJob job = state_job();
  job.plan.pp = 2;
  job.plan.dp = 2;
  job.plan.gemm = DType::kFp8;
  require_equal_losses(job, [](TrainingJob& away) { away.plan.offload.activations = true; });
}

// The forward pass of a group runs again from the same input: the same bits.
TEST_CASE("activations that are computed again, of groups of layers or of single ops, change no bit") {
  for (const int layers : {1, 2, 3}) {
    require_equal_losses(state_job(), [&](TrainingJob& job) {
      job.plan.recompute = RecomputePolicy::kFull;
      job.plan.recompute_layers = layers;
    });
  }
  require_equal_losses(state_job(), [](TrainingJob& job) {
    job.plan.recompute = RecomputePolicy::kFull;
    job.plan.recompute_every = 2;
  });
  for (int op = 0; op < kNumRecomputeOps; ++op) {
    CAPTURE(op);
    require_equal_losses(state_job(), [&](TrainingJob& job) {
      job.plan.recompute = RecomputePolicy::kSelective;
      job.plan.recompute_ops = {static_cast<RecomputeOp>(op)};
    });
  }
}

// An 8-bit number with 3 fraction bits is off by 2^-4 of itself at most, or by 2^-10 of the 448 to which the
// largest of its 128 neighbours is scaled. Sums of gradients, and first moments, are then off by so little
// that a loss of three small steps moves by less than a hundredth; that it moves at all shows that the
// formats are in use.
TEST_CASE("gradients reduced in 8 bits and 8-bit moments move the losses by less than a hundredth") {
  const auto near = [](const auto& change) {
    TrainingJob job = state_job();
    const std::vector<double> expected = three_losses<float>(job, false);
    change(job);
    const std::vector<double> found = three_losses<float>(job, false);
    CHECK(found[0] == expected[0]);
    CHECK(found != expected);
    for (int step = 1; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(0.01));
  };
  for (const int zero : {0, 1, 2, 3}) {
    near([&](TrainingJob& job) { job.plan.gradients = DType::kFp8, job.plan.zero = zero; });
  }
  near([](TrainingJob& job) { job.plan.optimizer_states = DType::kFp8; });
  near([](TrainingJob& job) { job.plan.optimizer_states = DType::kFp8, job.plan.zero = 2; });
  near([](TrainingJob& job) { job.plan.master = DType::kBf16; });
  near([](TrainingJob& job) { job.plan.keeps_master = false; });
}

}  // namespace moebius
