// A small mixture of experts trains on the device as it does on the host, whatever the plan.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/gpu/device_tests.h"

namespace moebius {
namespace {

TrainingJob job_of(AttentionKind attention, int steps) {
  TrainingJob job = small_job(small_model(attention));
  job.workload.sequence_length = 32;
  job.workload.global_batch = 8;
  job.workload.micro_batch = 2;
  job.workload.steps = steps;
  return job;
}

// Losses of both, step by step.
struct Curves {
  std::vector<double> host, device;
};

Curves train(const TrainingJob& job, const Constants& constants = {}) {
  HostOptions host_options;
  host_options.constants = constants;
  host_options.adam.learning_rate = 1e-2;
  SmallRun<float> host(job, host_options);
  HostExecutor<float>& on_host = host.run();
  DeviceRun device(job, {.adam = host_options.adam, .constants = constants, .poison = true});
  CudaExecutor& on_device = device.run();
  Curves curves;
  for (int step = 0; step < on_host.num_steps(); ++step) {
    curves.host.push_back(on_host.loss(step));
    curves.device.push_back(on_device.loss(step));
  }
  REQUIRE(on_device.num_steps() == on_host.num_steps());
  return curves;
}

// The first step has equal weights, so that only the order of sums and the rounding of what lies near a tie
// differ; later ones drift apart as any two runs in low precision do.
void check_close(const Curves& curves) {
  REQUIRE(!curves.host.empty());
  CHECK(curves.device[0] == Approx(curves.host[0]).epsilon(1e-3));
  for (std::size_t step = 0; step < curves.host.size(); ++step) {
    INFO("step " << step);
    CHECK(curves.device[step] == Approx(curves.host[step]).epsilon(0.03));
  }
}

}  // namespace

TEST_CASE(
    "twenty steps of a mixture of experts with latent attention on two ranks lower the loss as on the host") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla, 20);
  job.plan.dp = 2;
  job.plan.ep = 2;
  const Curves curves = train(job);
  check_close(curves);
  CHECK(curves.device.back() < curves.device.front() - 0.3);
}

TEST_CASE("one rank with grouped-query attention") {
  NEEDS_DEVICE();
  check_close(train(job_of(AttentionKind::kGqa, 4)));
}

TEST_CASE("chunks of attention that the end of a sequence cuts off") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kGqa, 4);
  job.model.attention_chunk = 12;  // 12, 12 and 8 tokens: rows that their number does not divide
  check_close(train(job));
}

TEST_CASE("shared experts with a gate on two ranks") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kGqa, 4);
  job.model = with_shared_gate(job.model);
  job.plan.dp = job.plan.ep = 2;
  check_close(train(job));
}

TEST_CASE("biases of queries, keys and values over two ranks, in BF16 and FP8") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kGqa, 4);
  job.model = with_biases(job.model);
  job.model.experts = {};
  job.plan.tp = 2;
  check_close(train(job));
  job.plan.gemm = DType::kFp8;
  check_close(train(job));
}

TEST_CASE("norms of heads, stretched positions, a scale of scores") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kGqa, 4);
  job.model.qk_norm = QkNorm::kPerHead;
  job.plan.tp = 2;
  job.model.experts = {};
  check_close(train(job, {.rotary = {.base = 500, .factor = 8, .low = 1, .high = 3, .magnitude = 1.3},
                          .score_scale = 0.7,
                          .norm_epsilon = 1e-3}));
}

TEST_CASE("norms of all heads together, of which ranks have some each") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kGqa, 4);
  job.model.qk_norm = QkNorm::kPerLayer;
  job.plan.tp = 2;
  job.model.experts = {};
  check_close(train(job, {.rotary = {.base = 500}, .norm_epsilon = 1e-3}));
}

TEST_CASE("FP8 products and FP8 dispatch") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla, 6);
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.plan.gemm = job.plan.dispatch = DType::kFp8;
  check_close(train(job));
}

TEST_CASE("FP8 weights that are gathered in BF16 and cast by every rank") {
  NEEDS_DEVICE();
  for (const int zero : {1, 3}) {
    TrainingJob job = job_of(AttentionKind::kMla, 4);
    job.plan.dp = 2;
    job.plan.gemm = DType::kFp8;
    job.plan.half_weights = true;
    job.plan.zero = zero;
    check_close(train(job));
  }
}

TEST_CASE("tensor parallelism") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kGqa, 3);
  job.plan.tp = 2;
  check_close(train(job));
}

TEST_CASE("context parallelism") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kGqa, 3);
  job.plan.cp = 2;
  check_close(train(job));
}

TEST_CASE("pipeline stages with sharded optimizer states") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla, 3);
  job.plan.pp = 2;
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.plan.zero = 1;
  check_close(train(job));
}

TEST_CASE("dispatch and combine on a lane of their own") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla, 4);
  job.plan.dp = 4;
  job.plan.ep = 4;
  job.plan.overlap_dispatch_combine = true;
  check_close(train(job));
}

}  // namespace moebius
