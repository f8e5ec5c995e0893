// Closed forms of steps whose batches are read.
#include <catch2/catch.hpp>

#include "tests/laws/simulated_step.h"

using namespace moebius;

namespace {

constexpr int kMicrobatches = 12;

struct Read {
  double seconds = 0;  // of a microbatch
  int ahead = 0;       // buffers; 0: batches are there
  Time call = {};      // of an eager host; none: launches are hidden
  int steps = 1;
  int workers = 1;
};

struct ReadStep {
  double seconds = 0, exposed = 0;
};

ReadStep step_of(const Read& read) {
  TrainingJob job = equal_stages(1, kMicrobatches);
  job.workload.input_ahead = read.ahead;
  job.workload.steps = read.steps;
  if (read.call > Time{}) job.plan.launch = LaunchMode::kEager;
  Cluster cluster = make_cluster(instant_network(1));
  for (Pool& pool : cluster.pools) {
    pool.accelerator.host_rate = pool.node.host_memory_rate = {1e15};
    pool.accelerator.kernel_floor = {};
  }
  cluster = {cluster.pools,
             Fabric(cluster.fabric.spec(), {part_of_fabric(cluster.pools[0], cluster.fabric.spec())})};
  cluster.loader.emplace().batch_seconds = read.seconds;
  cluster.loader->workers = read.workers;
  cluster.launch = read.call;
  const StepResult step = simulate(job, cluster, cost_of_passes());
  return {step.seconds, step.metrics.breakdown.exposed[static_cast<int>(OpKind::kInput)]};
}

}  // namespace

// Reading takes longer than computing: the last batch is there after all have been read.
TEST_CASE("a starved step takes as long as reading, and its last microbatch") {
  const ReadStep step = step_of({.seconds = 5e-3, .ahead = 3});
  CHECK(step.seconds == Approx(kMicrobatches * 5e-3 + kForward + kBackward).epsilon(1e-3));
  CHECK(step.exposed == Approx(step.seconds - kMicrobatches * (kForward + kBackward)).epsilon(1e-3));
}

// But for the first batch, which nothing hides.
TEST_CASE("batches that are read ahead fast enough cost nothing but the first") {
  const double there = step_of({}).seconds;
  const ReadStep step = step_of({.seconds = 1.5e-3, .ahead = 3});
  CHECK(there == Approx(kMicrobatches * (kForward + kBackward)).epsilon(1e-3));
  CHECK(step.seconds == Approx(there + 1.5e-3).epsilon(1e-3));
  CHECK(step.exposed == Approx(1.5e-3).epsilon(1e-3));
}

// The host is slower than the device and the disk: what is read comes and goes while it is busy.
TEST_CASE("an eager host calls as often in every step, however far batches are read ahead") {
  const Time call{1'000'000};
  const double one = step_of({.seconds = 1e-6, .ahead = 2, .call = call}).seconds;
  CHECK(one > kMicrobatches * (kForward + kBackward));
  for (int ahead = 1; ahead <= 4; ++ahead) {
    const ReadStep four = step_of({.seconds = 1e-6, .ahead = ahead, .call = call, .steps = 4});
    CHECK(four.seconds == Approx(4 * one).epsilon(0.01));
  }
}

// Four workers have a batch each under way: one comes every 5 ms, but the first takes its worker's 20 ms.
TEST_CASE("workers side by side shorten the time between batches, not that of the first") {
  const ReadStep step = step_of({.seconds = 20e-3, .ahead = 4, .workers = 4});
  CHECK(step.seconds == Approx(20e-3 + (kMicrobatches - 1) * 5e-3 + kForward + kBackward).epsilon(1e-3));
  const ReadStep two = step_of({.seconds = 20e-3, .ahead = 4, .steps = 2, .workers = 4});
  CHECK(two.seconds == Approx(20e-3 + (2 * kMicrobatches - 1) * 5e-3 + kForward + kBackward).epsilon(1e-3));
}

// With one buffer the next batch is read once the forward pass has left it, beside the backward pass.
TEST_CASE("without prefetch reading hides behind the backward pass alone") {
  const double slow = 5e-3;
  CHECK(step_of({.seconds = slow, .ahead = 1}).seconds ==
        Approx(kMicrobatches * (slow + kForward) + kBackward).epsilon(1e-3));
  const double fast = 1.5e-3;  // shorter than a backward pass
  CHECK(step_of({.seconds = fast, .ahead = 1}).seconds ==
        Approx(fast + kMicrobatches * (kForward + kBackward)).epsilon(1e-3));
}
