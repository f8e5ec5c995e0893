// Laws of whole training steps on the simulator.
#include <catch2/catch.hpp>

#include <map>
#include <numeric>

#include "tests/laws/simulated_step.h"
#include "workloads/training/pipeline/fragment_clock.h"

using namespace moebius;

namespace {

// Both passes of a microbatch on one rank: what a clock says of them, and what they take when they run.
std::pair<double, double> clock_and_step(const TrainingPlan& plan) {
  Pool pool = make_cluster({.nodes = 1, .per_node = 1}).pools.front();
  pool.accelerator.peak[static_cast<int>(DType::kBf16)] = {100e12};
  pool.accelerator.kernel_floor = Time{5'000};
  const FabricSpec spec = make_cluster({}).fabric.spec();
  const Cluster cluster{{pool}, Fabric(spec, {part_of_fabric(pool, spec)})};
  TrainingJob job = small_job();
  job.plan = plan;
  job.workload.sequence_length = 512;
  job.workload.global_batch = 1;
  Training training(job);
  std::vector<Submission> passes = all_submissions(training);
  std::erase_if(passes, [](const Submission& pass) {
    return pass.fragment->phase != Phase::kForward && pass.fragment->phase != Phase::kBackward;
  });
  for (Submission& pass : passes) pass.after.clear();
  const std::unique_ptr<CostSource> costs = make_cost_source(pool.accelerator);
  Recorder recorder(training.layout(), {});
  const auto executor = make_sim_executor(cluster, training.layout(), {costs.get()}, recorder, {});
  FragmentClock clock(cluster);
  double seconds = 0;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    passes[i].sequence = static_cast<std::int32_t>(i);
    seconds += clock.seconds(*passes[i].fragment, training.layout().classes[0], pool);
    recorder.submitted(passes[i]);
    executor->submit(passes[i]);
  }
  return {seconds, executor->finish().seconds()};
}

}  // namespace

// Kernels one by one, in one, or none at all where an exchange does what they would.
TEST_CASE("a clock of fragments counts the kernels that a step runs") {
  TrainingPlan plain;
  std::vector<TrainingPlan> plans(8, plain);
  plans[1].loss = LossKernels::kSeparate;
  plans[2].eager_elementwise = true;
  plans[3].separate_norm_grad = true;
  plans[4].separate_routing = true;
  plans[5].expert_by_expert = true;
  plans[6].exchange = Algorithm::kDirect;
  plans[7].attention = AttentionKernels::kUnfused;
  const double least = clock_and_step(plain).first;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto [clock, step] = clock_and_step(plans[i]);
    INFO("plan " << i);
    CHECK(clock == Approx(step).epsilon(1e-3));
    if (i > 0) CHECK(std::abs(clock / least - 1) > 1e-3);
  }
}

// m microbatches on p equal stages: m + p - 1 slots of forward plus backward time, of which p - 1 are bubble
// (Narayanan et al., SC'21, section 2.2).
TEST_CASE("the simulated bubble of equal stages is (p-1)/(m+p-1)") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kGpipe}) {
    for (const auto& [stages, microbatches] : {std::pair{4, 16}, {8, 8}, {2, 5}, {1, 3}}) {
      const World world = instant_network(stages);
      const NamedCost cost = cost_of_passes();
      TrainingJob job = equal_stages(stages, microbatches);
      job.plan.schedule = kind;
      const StepResult step = simulate(job, world, cost);
      const double expected = (microbatches + stages - 1) * (kForward + kBackward);
      CHECK(step.seconds == Approx(expected).epsilon(1e-3));
      const double bubble = step.metrics.breakdown.idle / step.seconds;
      CHECK(bubble == Approx((stages - 1.0) / (microbatches + stages - 1)).margin(2e-3));
    }
  }
}

TEST_CASE("more microbatches never make a step shorter, more stages never make a stage's work larger") {
  const World world = instant_network(4);
  const NamedCost cost({{OpKind::kAttention, {1e-3}}, {OpKind::kAttentionGrad, {2e-3}}});
  double last = 0;
  for (const int microbatches : {1, 2, 4, 8}) {
    const double seconds = simulate(equal_stages(4, microbatches), world, cost).seconds;
    CHECK(seconds > last);
    last = seconds;
  }
}

// One rank of each class stands for all: in a symmetric job the other ranks do the same at the same time.
TEST_CASE("folded and unfolded steps of a routed job agree") {
  for (const double exponent : {0.0, 0.8}) {
    TrainingJob job = small_job();
    job.plan.dp = 8;
    job.plan.pp = 2;
    job.plan.zero = 1;
    job.plan.overlap_gradients = true;
    job.workload.global_batch = 32;
    job.ranks_per_node = 4;
    if (exponent > 0) job.workload.popularity = {PopularityKind::kZipf, exponent, false};
    World world{.nodes = 4, .per_node = 4};
    world.nic = 1e8;  // slow enough that communication decides
    const NamedCost cost({{OpKind::kAttention, {1e-5}},
                          {OpKind::kAttentionGrad, {2e-5}},
                          {OpKind::kGroupedGemm, {1e-6, 0, true}},
                          {OpKind::kGroupedGemmDgrad, {1e-6, 0, true}}});
    const double folded = simulate(job, world, cost).seconds;
    job.plan.fold = false;
    const double unfolded = simulate(job, world, cost).seconds;
    INFO("folded " << folded << " s, unfolded " << unfolded << " s");
    CHECK(folded == Approx(unfolded).epsilon(0.005));
  }
}

TEST_CASE("skewed experts make a step longer than balanced ones") {
  TrainingJob job = small_job();
  const World world{.nodes = 1, .per_node = 4};
  const NamedCost cost({{OpKind::kGroupedGemm, {1e-6, 0, true}}});
  const double balanced = simulate(job, world, cost).seconds;
  job.workload.popularity = {PopularityKind::kZipf, 1.2, false};
  CHECK(simulate(job, world, cost).seconds > balanced);
}

// What overlaps can only help: the last microbatch's gradients travel while earlier layers are still in
// reverse.
TEST_CASE("overlapping gradient reduction never makes a step longer") {
  TrainingJob job = small_job();
  World world{.nodes = 1, .per_node = 4};
  world.link = 1e8;
  const NamedCost cost({{OpKind::kAttention, {1e-4}}, {OpKind::kAttentionGrad, {3e-4}}});
  const double after = simulate(job, world, cost).seconds;
  job.plan.overlap_gradients = true;
  CHECK(simulate(job, world, cost).seconds < after);
}

// An update needs its own gradients, not those that still travel; its states come meanwhile. Within 3%: in
// the order in which sums end what comes first, before anything can go, is all that a group of layers has and
// not its dense part alone; and sums of single blocks are smaller.
TEST_CASE("with an optimizer in host memory too, overlapping gradient reduction never makes a step longer") {
  const NamedCost cost({{OpKind::kAttention, {1e-4}}, {OpKind::kAttentionGrad, {3e-4}}});
  World world{.nodes = 1, .per_node = 8};
  world.link = 1e9;
  for (const double host : {1e8, 1e9, 1e10}) {
    Pool pool = make_cluster(world).pools.front();
    pool.accelerator.host_rate = {host};
    pool.node.host_memory_rate = {100 * host};
    const FabricSpec spec = make_cluster(world).fabric.spec();
    const Cluster cluster{{pool}, Fabric(spec, {part_of_fabric(pool, spec)})};
    for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kInterleaved, PipelineKind::kZbV}) {
      for (const int zero : {0, 1}) {
        CAPTURE(host, static_cast<int>(kind), zero);
        TrainingJob job = small_job();
        job.model.layers = 16;
        job.model.experts.width = job.model.experts.shared_width = 512;
        job.plan.pp = 2;
        job.plan.ep = 2;
        job.plan.schedule = kind;
        job.plan.chunks = kind == PipelineKind::k1F1B ? 1 : 2;
        job.plan.zero = zero;
        job.plan.offload.optimizer = true;
        const double after = simulate(job, cluster, cost).seconds;
        job.plan.overlap_gradients = true;
        CHECK(simulate(job, cluster, cost).seconds <= after * 1.03);
      }
    }
  }
}

// Each of the two has as its first stage the other's last.
TEST_CASE("ranks that hold the same stages in another order update the same groups of layers together") {
  const World world{.nodes = 2, .per_node = 8};
  const NamedCost cost({{OpKind::kAttention, {1e-4}}});
  for (const int group_layers : {1, 2, 3}) {
    CAPTURE(group_layers);
    TrainingJob job = small_job();
    job.model.layers = 8;
    job.plan.pp = 4;
    job.plan.ep = 2;
    job.plan.schedule = PipelineKind::kDualPipe;
    job.plan.zero = 1;
    job.plan.group_layers = group_layers;
    job.plan.offload.optimizer = true;
    job.workload.global_batch = 64;
    CHECK(simulate(job, world, cost).seconds > 0);
  }
}

TEST_CASE("without sharing of wires a step is never longer") {
  TrainingJob job = small_job();
  World world{.nodes = 1, .per_node = 4};
  world.link = 1e9;
  const NamedCost cost({{OpKind::kAttention, {1e-5}}, {OpKind::kAttentionGrad, {2e-5}}});
  const double alone = simulate(job, world, cost, {NetworkDetail::kAlphaBeta}).seconds;
  CHECK(alone <= simulate(job, world, cost, {NetworkDetail::kFluid}).seconds * (1 + 1e-9));
}
