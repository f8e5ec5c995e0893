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

namespace moebius {
namespace {

// So many devices in a rehearsal, while it lives.
class Devices {
 public:
  explicit Devices(int count) { setenv("MOEBIUS_REHEARSED_DEVICES", std::to_string(count).c_str(), 1); }
  ~Devices() { unsetenv("MOEBIUS_REHEARSED_DEVICES"); }
  Devices(const Devices&) = delete;
};

struct Trained {
  std::vector<double> losses;
  std::vector<double> sent;
  bool operator==(const Trained&) const = default;
};

Trained train(const TrainingJob& job, int devices) {
  const Devices there(devices);
  DeviceRun run(job, {.adam = {.learning_rate = 1e-2}, .poison = true});
  CudaExecutor& executor = run.run();
  Trained trained;
  for (int step = 0; step < executor.num_steps(); ++step) trained.losses.push_back(executor.loss(step));
  double sent = 0;
  for (const Transfer& transfer : executor.transfers()) sent += transfer.sent_bytes;
  trained.sent.push_back(sent);
  return trained;
}

// Kernels and the order of sums are the same, so that every bit is.
void check_as_on_one(const TrainingJob& job, int devices) {
  const Trained one = train(job, 1);
  REQUIRE(!one.losses.empty());
  CHECK(train(job, devices) == one);
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
