// Laws of devices that differ in speed.
#include <catch2/catch.hpp>

#include <map>
#include <numeric>

#include "tests/laws/simulated_step.h"
#include "workloads/training/device_speeds.h"
#include "workloads/training/pipeline/columns.h"

using namespace moebius;

namespace {

StepResult result_of(TrainingJob job, const SpeedVariation& variation, bool fold) {
  const Cluster cluster = make_cluster(instant_network(job.plan.ranks()));
  job.plan.fold = fold;
  if (variation.any()) {
    job.speeds.emplace(variation, 7);
    job.column_kinds = with_slow_columns(job.plan, {}, *job.speeds);
  }
  return simulate(job, cluster, cost_of_passes());
}

std::vector<std::int32_t> first_devices(std::size_t count) {
  std::vector<std::int32_t> devices(count);
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

double seconds_of(const TrainingJob& job, const SpeedVariation& variation, bool fold) {
  return result_of(job, variation, fold).seconds;
}

}  // namespace

// Replicas meet when gradients are reduced: the slowest of them decides.
TEST_CASE("a step of replicas takes as long as that of the slowest device") {
  const SpeedVariation variation{.sigma = 0.03};
  const DeviceSpeeds speeds(variation, 7);
  const double slowest = speeds.of(slowest_device(speeds, first_devices(32)));
  const TrainingJob job = equal_stages(1, 4, 32);
  for (const bool fold : {false, true})
    CHECK(seconds_of(job, variation, fold) == Approx(4 * (kForward + kBackward) / slowest).epsilon(1e-5));
}

// A replica of half the speed: the other one has nothing to do but wait for it where gradients are reduced.
TEST_CASE("a slow replica holds up no other before they meet") {
  const StepResult step = result_of(equal_stages(1, 32, 2), {.slow = {{1, 0.5}}}, false);
  CHECK(step.seconds == Approx(32 * (kForward + kBackward) / 0.5).epsilon(1e-4));
  const Breakdown& mean = step.metrics.breakdown;
  const double waiting = std::accumulate(mean.waiting.begin(), mean.waiting.end(), 0.0);
  CHECK(mean.idle == Approx(waiting).epsilon(1e-3));
  CHECK(waiting > 0.2 * step.seconds);
}

// The expected largest of 64 standard normal numbers is 2.3437 (Harter 1961).
TEST_CASE("the slowest of n devices is as slow as the smallest of n normal numbers") {
  double sum = 0;
  constexpr int kRuns = 200;
  for (int seed = 0; seed < kRuns; ++seed) {
    const DeviceSpeeds speeds({.sigma = 0.01}, seed);
    sum += speeds.of(slowest_device(speeds, first_devices(64)));
  }
  CHECK((1 - sum / kRuns) / 0.01 == Approx(2.3437).epsilon(0.04));
}

// One slow stage, the third of four, in 1F1B: its 12 slots of 3 ms / 0.8 = 45 ms; before them two forward
// passes of the stages ahead (2 ms), after them their two backward passes (4 ms). Between its first two
// forward passes (1.25 ms each) and its first backward pass it waits for the last stage's 3 ms, 1.75 ms of
// them with nothing to do; before its last backward pass, where a backward pass of 2.5 ms is between, 0.5 ms.
TEST_CASE("a slow device paces its pipeline and, over the reduction of gradients, all others") {
  const SpeedVariation variation{.slow = {{5, 0.8}}};  // stage 2 of replica 1
  for (const bool fold : {false, true}) {
    const double seconds = seconds_of(equal_stages(4, 12, 2), variation, fold);
    CHECK(seconds == Approx(0.045 + 0.002 + 0.004 + 0.00175 + 0.0005).epsilon(1e-4));
  }
}

TEST_CASE("folded columns of unlike speed take as long as all their ranks one by one") {
  for (const double sigma : {0.005, 0.05}) {
    for (const SpeedLaw law : {SpeedLaw::kNormal, SpeedLaw::kLogNormal}) {
      const SpeedVariation variation{.law = law, .sigma = sigma};
      const TrainingJob job = equal_stages(4, 8, 24);
      const double unfolded = seconds_of(job, variation, false);
      CHECK(seconds_of(job, variation, true) == Approx(unfolded).epsilon(0.005));
      CHECK(unfolded > seconds_of(job, {}, true));
    }
  }
}
