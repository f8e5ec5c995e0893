// Steps whose modules are captured in graphs, on a host that is slower than its device.
#include <catch2/catch.hpp>

#include "tests/laws/simulated_step.h"

using namespace moebius;

namespace {

// A call takes ten times as long as the only op that costs anything.
double host_bound_seconds(TrainingJob job, LaunchMode launch, std::vector<GraphModule> modules) {
  job.plan.launch = launch;
  job.plan.captured = std::move(modules);
  Cluster cluster = make_cluster(instant_network(4));
  cluster.launch = Time{20'000};
  return simulate(job, cluster, NamedCost({{OpKind::kAttention, {2e-6}}})).seconds;
}

TrainingJob limited_job() {
  TrainingJob job = small_job();
  job.plan.capacity = 1.25;
  return job;
}

const std::vector<GraphModule> kAllButExperts{GraphModule::kAttention, GraphModule::kMlp,
                                              GraphModule::kMoeRouter, GraphModule::kMoePreprocess};
const std::vector<GraphModule> kAll{GraphModule::kAttention, GraphModule::kMlp, GraphModule::kMoe};

}  // namespace

TEST_CASE("each module that is captured takes calls off an eager host, and none takes none") {
  const TrainingJob job = limited_job();
  const double eager = host_bound_seconds(job, LaunchMode::kEager, {});
  const double attention = host_bound_seconds(job, LaunchMode::kEager, {GraphModule::kAttention});
  const double experts_alone = host_bound_seconds(job, LaunchMode::kEager, kAllButExperts);
  const double all = host_bound_seconds(job, LaunchMode::kEager, kAll);
  const double whole = host_bound_seconds(job, LaunchMode::kGraph, {});
  CHECK(attention < 0.9 * eager);
  CHECK(experts_alone < 0.9 * attention);
  CHECK(all < 0.9 * experts_alone);
  CHECK(whole < all);
  CHECK(host_bound_seconds(job, LaunchMode::kHidden, {}) < whole);
}

// Scoring has no way back.
TEST_CASE("graphs take calls off both directions") {
  TrainingJob job = limited_job();
  const double eager = host_bound_seconds(job, LaunchMode::kEager, {}),
               captured = host_bound_seconds(job, LaunchMode::kEager, kAllButExperts);
  job.workload.forward_only = true;
  const double eager_forward = host_bound_seconds(job, LaunchMode::kEager, {}),
               captured_forward = host_bound_seconds(job, LaunchMode::kEager, kAllButExperts);
  CHECK(captured_forward < 0.9 * eager_forward);
  CHECK(captured - captured_forward < 0.9 * (eager - eager_forward));
}

TEST_CASE("kernels that are launched one by one have graphs between them all the same") {
  const TrainingJob job = limited_job();
  const double kernels = host_bound_seconds(job, LaunchMode::kKernel, {});
  const double experts_alone = host_bound_seconds(job, LaunchMode::kKernel, kAllButExperts);
  CHECK(experts_alone < 0.8 * kernels);
  CHECK(host_bound_seconds(job, LaunchMode::kKernel, kAll) < experts_alone);
}

// An eager host reads how many rows come, unless that is known.
TEST_CASE("a host that knows the sizes of experts' buffers does not wait for the router") {
  TrainingJob job = limited_job();
  job.plan.exchange = Algorithm::kLibrary;
  job.plan.launch = LaunchMode::kEager;
  Cluster cluster = make_cluster(instant_network(4));
  cluster.launch = Time{20'000};
  const auto seconds = [&](ExpertBuffers buffers) {
    job.plan.expert_buffers = buffers;
    return simulate(job, cluster, NamedCost({{OpKind::kAttention, {5e-3}}})).seconds;
  };
  CHECK(seconds(ExpertBuffers::kPadded) < 0.99 * seconds(ExpertBuffers::kRows));
}

TEST_CASE("a folded step with captured modules takes what it takes rank by rank") {
  TrainingJob job = small_job();
  const double folded = host_bound_seconds(job, LaunchMode::kEager, kAllButExperts);
  job.plan.fold = false;
  CHECK(folded == Approx(host_bound_seconds(job, LaunchMode::kEager, kAllButExperts)).epsilon(0.005));
}
