// Ranks on several devices compute what they compute on one. On real devices these run on as many as are
// there; a rehearsal has as many as each test says, and no device can touch the memory of another.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include <catch2/catch.hpp>

#include "real/cuda/near_copy.h"
#include "tests/gpu/device_tests.h"
#include "tests/gpu/rehearsal/guarded_memory.h"
#include "tests/gpu/rehearsed_devices.h"

namespace moebius {
namespace {

struct Trained {
  std::vector<double> losses;
  std::vector<double> sent;
  std::int64_t by_nccl = 0;
  bool operator==(const Trained&) const = default;
};

Trained train(const TrainingJob& job, int devices, cuda::ExchangeBy exchange = cuda::ExchangeBy::kOwn) {
  const Devices there(devices);
  DeviceRun run(job, {.adam = {.learning_rate = 1e-2}, .exchange = exchange, .poison = true});
  CudaExecutor& executor = run.run();
  Trained trained;
  for (int step = 0; step < executor.num_steps(); ++step) trained.losses.push_back(executor.loss(step));
  double sent = 0;
  for (const Transfer& transfer : executor.transfers()) sent += transfer.sent_bytes;
  trained.sent.push_back(sent);
  trained.by_nccl = executor.nccl_exchanges();
  return trained;
}

// Kernels and the order of sums are the same, so that every bit is.
void check_as_on_one(const TrainingJob& job, int devices) {
  const Trained one = train(job, 1);
  REQUIRE(!one.losses.empty());
  CHECK(train(job, devices) == one);
}

// Sums over members in another order: what they differ by, some 2^-24 of FP32 in two steps of Adam (which
// divides a gradient by its own size), stays below 10^-4 of a loss.
void check_near_by_nccl(const TrainingJob& job, int devices) {
  const Trained own = train(job, devices), nccl = train(job, devices, cuda::ExchangeBy::kNccl);
  CHECK(own.by_nccl == 0);
  CHECK(nccl.sent == own.sent);
  REQUIRE(nccl.losses.size() == own.losses.size());
  for (std::size_t step = 0; step < own.losses.size(); ++step)
    CHECK(nccl.losses[step] == Approx(own.losses[step]).epsilon(1e-4));
  if (nccl_is_there(devices)) CHECK(nccl.by_nccl > 0);
}

TrainingJob job_of(AttentionKind attention) {
  TrainingJob job = small_job(small_model(attention));
  job.workload.steps = 2;
  return job;
}

}  // namespace

TEST_CASE("ranks stand on devices in contiguous blocks, and no device is without one") {
  CHECK(cuda::devices_of_ranks(8, 2) == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(cuda::devices_of_ranks(5, 3) == std::vector<int>{0, 1, 1, 2, 2});
  CHECK(cuda::devices_of_ranks(2, 8) == std::vector<int>{0, 1});
  CHECK(cuda::devices_of_ranks(3, 1) == std::vector<int>{0, 0, 0});
}

TEST_CASE(
    "a rehearsed device that touches the memory of another ends at once, unless it copies between the two") {
  cuda::GuardedMemory memory;
  auto* here = static_cast<char*>(memory.take(8, 0));
  auto* there = static_cast<char*>(memory.take(8, 1));
  memory.with({0, 1}, [&] { *here = 1, *there = 2; });
  memory.with({0}, [&] { CHECK(*here == 1); });
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    memory.with({0}, [&] { *there = 3; });
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  memory.with({1}, [&] { CHECK(*there == 2); });
  memory.give(here);
  memory.give(there);
}

TEST_CASE("dispatch and combine between devices: two with two ranks each; one for each rank") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla);
  job.plan.dp = 4;
  job.plan.ep = 4;
  check_as_on_one(job, 2);
  check_as_on_one(job, 4);
}

TEST_CASE("FP8 dispatch between devices carries its scales") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla);
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.plan.gemm = job.plan.dispatch = DType::kFp8;
  check_as_on_one(job, 2);
}

TEST_CASE("tensor parallelism between devices") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kGqa);
  job.plan.tp = 2;
  check_as_on_one(job, 2);
}

TEST_CASE("context parallelism between devices") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kGqa);
  job.plan.cp = 2;
  check_as_on_one(job, 2);
}

TEST_CASE("pipeline stages and sharded optimizer states on three devices") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla);
  job.plan.pp = 2;
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.plan.zero = 1;
  check_as_on_one(job, 3);
}

TEST_CASE("NCCL between a device for each rank: dispatch and combine and replicated gradients") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla);
  job.plan.dp = 4;
  job.plan.ep = 4;
  check_near_by_nccl(job, 4);
}

TEST_CASE("NCCL carries the scales of an FP8 dispatch") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla);
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.plan.gemm = job.plan.dispatch = DType::kFp8;
  check_near_by_nccl(job, 2);
}

TEST_CASE("NCCL between a device for each rank: tensor and context parallelism") {
  NEEDS_DEVICE();
  TrainingJob tensor = job_of(AttentionKind::kGqa), context = tensor;
  tensor.plan.tp = 2;
  check_near_by_nccl(tensor, 2);
  context.plan.cp = 2;
  check_near_by_nccl(context, 2);
}

TEST_CASE("NCCL between pipeline stages with sharded states: groups of several on the same devices") {
  NEEDS_DEVICE();
  TrainingJob job = job_of(AttentionKind::kMla);
  job.plan.pp = 2;
  job.plan.dp = 2;
  job.plan.ep = 2;
  job.plan.zero = 1;
  check_near_by_nccl(job, 4);
  check_near_by_nccl(job, 3);  // one group has two members on one device: own copies
}

TEST_CASE("without NCCL a run says so and has the bits of one device") {
  NEEDS_DEVICE();
  const WithoutNccl none;
  TrainingJob job = job_of(AttentionKind::kGqa);
  job.plan.tp = 2;
  const Trained trained = train(job, 2, cuda::ExchangeBy::kNccl);
  if (!nccl_is_there(2)) CHECK(trained == train(job, 1));
  const Devices there(2);
  DeviceRun run(job, {});
  const auto [name, text] = run.executor().description().back();
  if (name == "between devices" && !nccl_is_there(2)) CHECK(text.find("own copies: none of libnccl") == 0);
}

TEST_CASE("the description of a run says which ranks stand on which device") {
  NEEDS_DEVICE();
  const Devices there(2);
  TrainingJob job = job_of(AttentionKind::kGqa);
  job.plan.dp = 3;
  job.workload.global_batch = 3;
  DeviceRun run(job, {});
  const auto lines = run.executor().description();
  if (lines[0].first == "device") {
    WARN("skipped: there is one device");
    return;
  }
  CHECK(lines[0].first == "device 0");
  CHECK(lines[0].second.find(": rank 0") != std::string::npos);
  CHECK(lines[1].second.find(": ranks 1-2") != std::string::npos);
}

}  // namespace moebius
