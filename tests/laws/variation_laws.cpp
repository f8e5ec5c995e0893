// Laws of devices that differ in speed.
#include <catch2/catch.hpp>

#include <map>

#include "../unit/training/small_job.h"
#include "small_world.h"
#include "workloads/schedule/recorder.h"
#include "workloads/training/device_speeds.h"
#include "workloads/training/pipeline/columns.h"

using namespace moebius;

namespace {

constexpr double kForward = 1e-3, kBackward = 2e-3;

// Layers of equal work, one for each stage; attention alone costs something.
TrainingJob job_of(int stages, int replicas, int microbatches) {
  TrainingJob job;
  job.model = small_model();
  job.model.experts = {};
  job.model.first_dense = 0;
  job.model.layers = stages;
  job.model.vocabulary = 16;
  job.plan.pp = stages;
  job.plan.dp = replicas;
  job.workload.sequence_length = 32;
  job.workload.global_batch = microbatches * replicas;
  return job;
}

double seconds_of(TrainingJob job, const SpeedVariation& variation, bool fold) {
  const Cluster cluster = make_cluster(instant_network(job.plan.ranks()));
  const NamedCost cost({{OpKind::kAttention, {kForward}}, {OpKind::kAttentionGrad, {kBackward}}});
  job.plan.fold = fold;
  if (variation.any()) {
    job.speeds.emplace(variation, 7);
    job.column_kinds = with_slow_columns(job.plan, {}, *job.speeds);
  }
  Training training(job);
  Recorder recorder(training.layout(), {});
  auto executor = make_sim_executor(cluster, training.layout(), {&cost}, recorder, {});
  return execute(training, *executor, recorder).seconds();
}

}  // namespace

// Replicas meet when gradients are reduced: the slowest of them decides.
TEST_CASE("a step of replicas takes as long as that of the slowest device") {
  const SpeedVariation variation{.sigma = 0.03};
  const DeviceSpeeds speeds(variation, 7);
  const double slowest = speeds.of(slowest_device(speeds, 32));
  const TrainingJob job = job_of(1, 32, 4);
  for (const bool fold : {false, true})
    CHECK(seconds_of(job, variation, fold) == Approx(4 * (kForward + kBackward) / slowest).epsilon(1e-5));
}

// The expected largest of 64 standard normal numbers is 2.3437 (Harter 1961).
TEST_CASE("the slowest of n devices is as slow as the smallest of n normal numbers") {
  double sum = 0;
  constexpr int kRuns = 200;
  for (int seed = 0; seed < kRuns; ++seed) {
    const DeviceSpeeds speeds({.sigma = 0.01}, seed);
    sum += speeds.of(slowest_device(speeds, 64));
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
    const double seconds = seconds_of(job_of(4, 2, 12), variation, fold);
    CHECK(seconds == Approx(0.045 + 0.002 + 0.004 + 0.00175 + 0.0005).epsilon(1e-4));
  }
}

TEST_CASE("folded columns of unlike speed take as long as all their ranks one by one") {
  for (const double sigma : {0.005, 0.05}) {
    for (const SpeedLaw law : {SpeedLaw::kNormal, SpeedLaw::kLogNormal}) {
      const SpeedVariation variation{.law = law, .sigma = sigma};
      const TrainingJob job = job_of(4, 24, 8);
      const double unfolded = seconds_of(job, variation, false);
      CHECK(seconds_of(job, variation, true) == Approx(unfolded).epsilon(0.005));
      CHECK(unfolded > seconds_of(job, {}, true));
    }
  }
}
