// Laws of pipeline schedules on the simulator: bubbles and what is alive, as their papers state them.
#include <catch2/catch.hpp>

#include "tests/laws/simulated_step.h"
#include "workloads/training/pipeline/pipeline.h"

using namespace moebius;

namespace {

// Of a chunk: F = attention, B of inputs = its reverse, W = the gradient of one matrix, the MLP's down
// projection. All else costs nothing.
class PassCost : public CostSource {
 public:
  PassCost(double input, double weight, double exchange_beside = 0)
      : input_(input), weight_(weight), beside_(exchange_beside) {}
  Cost cost(const CostQuery& query) const override {
    if (query.kind == OpKind::kAttention) return {.seconds = kForward};
    if (query.kind == OpKind::kAttentionGrad) return {.seconds = input_};
    const bool down = query.shape.m == 64 && query.shape.n == 128;
    if (query.kind == OpKind::kGemmWgrad && down) return {.seconds = weight_};
    if (query.kind == OpKind::kGroupedGemm || query.kind == OpKind::kGroupedGemmDgrad)
      return {.seconds = beside_};
    return {};
  }
  std::string description() const override { return "passes"; }

 private:
  double input_, weight_, beside_;
};

// Every stage has one layer.
TrainingJob scheduled_stages(PipelineKind kind, int ranks, int microbatches, int chunks = 1) {
  TrainingJob job = equal_stages(ranks, microbatches);
  job.plan.schedule = kind;
  job.plan.chunks = chunks;
  job.model.layers = StagePlacement(job.plan).stages();
  return job;
}

// Beyond the work of a rank.
double bubble(const TrainingJob& job, double input, double weight) {
  const int chunks = job.plan.schedule == PipelineKind::kDualPipe ? 1 : StagePlacement(job.plan).chunks();
  const double work = job.workload.global_batch * chunks * (kForward + input + weight);
  return simulate(job, instant_network(job.plan.pp), PassCost(input, weight)).seconds - work;
}

int most_alive(Training& training, int rank) {
  return training.memory({}).classes[rank].peak_microbatches;
}

}  // namespace

// Narayanan et al., SC'21, section 2.3: (p-1)(F+B)/v, F and B of a whole rank.
TEST_CASE("the simulated bubble of interleaved stages is v times smaller") {
  for (const auto& [ranks, chunks] : {std::pair{4, 2}, {4, 3}, {2, 4}}) {
    const TrainingJob job = scheduled_stages(PipelineKind::kInterleaved, ranks, 4 * ranks, chunks);
    CHECK(bubble(job, 1.5e-3, 0.5e-3) == Approx((ranks - 1) * 3e-3).epsilon(2e-3));
  }
}

// Qi et al., ICLR 2024, table 2.
TEST_CASE("the simulated bubble of ZB-H1 is (p-1)(F+B-W)") {
  for (const double weight : {1e-3, 0.5e-3}) {
    const TrainingJob job = scheduled_stages(PipelineKind::kZbH1, 4, 16);
    CHECK(bubble(job, 1.25e-3, weight) == Approx(3 * (kForward + 1.25e-3 - weight)).epsilon(2e-3));
  }
}

TEST_CASE("simulated ZB-V waits for the first microbatch alone") {
  const TrainingJob job = scheduled_stages(PipelineKind::kZbV, 4, 16);
  CHECK(bubble(job, 1e-3, 1e-3) == Approx(3 * kForward).epsilon(2e-3));
}

// DeepSeek-V3 technical report, table 2: (PP/2-1)(F&B+B-3W) of pairs that give what they have at their end.
// Without anything to hide F&B = F + B, B = input + W: (PP/2-1)(F + 2 input - W). Here the backward half of
// such a pair comes first and its gradient leaves at once: never more, and (PP/2-1)F, while the pipeline
// fills, at least.
TEST_CASE("the simulated bubble of DualPipe is (PP/2-1)(F&B+B-3W) at most") {
  for (const auto& [kind, ranks] : {std::pair{PipelineKind::kDualPipe, 8}, {PipelineKind::kDualPipeV, 4}}) {
    const double found = bubble(scheduled_stages(kind, ranks, 4 * ranks), 1e-3, 1e-3);
    CHECK(found <= 3 * 2e-3 * 1.002);
    CHECK(found >= 3 * kForward);
  }
}

// Two ranks of GPipe and n microbatches: ahead, a message of length m is hidden but for one each way;
// blocking, the first rank waits for it after each forward pass but the last, and the second one after each
// backward pass.
TEST_CASE("messages that block lengthen each pass by one message") {
  constexpr double kMessage = 1e-4;
  constexpr int kMicrobatches = 8;
  World world = instant_network(2);
  world.link = 32 * 64 * 2 / kMessage;  // tokens of a microbatch, columns, bytes
  TrainingJob job = scheduled_stages(PipelineKind::kGpipe, 2, kMicrobatches);
  const PassCost cost(1.5e-3, 0.5e-3);
  const double ahead = simulate(job, world, cost).seconds;
  CHECK(ahead == Approx((kMicrobatches + 1) * 3e-3 + 2 * kMessage).epsilon(0.01));
  job.plan.blocking_messages = true;
  CHECK(simulate(job, world, cost).seconds - ahead ==
        Approx(2 * (kMicrobatches - 1) * kMessage).epsilon(0.05));
}

TEST_CASE("passes and what lies between them make up the step") {
  const StepResult step =
      simulate(scheduled_stages(PipelineKind::kDualPipe, 4, 16), instant_network(4), PassCost(1e-3, 1e-3));
  const PassSeconds& passes = step.metrics.passes;
  CHECK(passes.overlapped > 0);
  CHECK(passes.weight > 0);
  CHECK(passes.forward + passes.backward + passes.weight + passes.overlapped + passes.between +
            passes.optimizer ==
        Approx(step.seconds));
  // All 16 microbatches pass through 4 stages, each of which two ranks hold: 16 of F + B + W on every rank.
  CHECK(passes.forward + passes.backward + passes.weight + passes.overlapped ==
        Approx(16 * 3e-3).epsilon(1e-3));
}

TEST_CASE("memory counts the passes that each schedule keeps alive") {
  Training one(scheduled_stages(PipelineKind::k1F1B, 4, 16));
  for (int rank = 0; rank < 4; ++rank) CHECK(most_alive(one, rank) == 4 - rank);
  Training interleaved(scheduled_stages(PipelineKind::kInterleaved, 4, 16, 2));
  CHECK(most_alive(interleaved, 0) == 3 * 4 - 1);
  Training zero(scheduled_stages(PipelineKind::kZbH1, 4, 16));
  CHECK(most_alive(zero, 0) <= 4);
  CHECK(most_alive(zero, 3) <= 4);
  Training dual(scheduled_stages(PipelineKind::kDualPipe, 4, 16));
  CHECK(most_alive(dual, 0) <= 4 + 1);
}

// After the last pass of a step nothing of it is left: what a pass keeps, another one releases.
TEST_CASE("activations that a step keeps are all released") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kInterleaved, PipelineKind::kZbH1,
                                  PipelineKind::kZbV, PipelineKind::kDualPipe, PipelineKind::kDualPipeV}) {
    TrainingJob job = scheduled_stages(kind, 4, 16, kind == PipelineKind::kInterleaved ? 2 : 1);
    job.plan.recompute = RecomputePolicy::kSelective;
    job.plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kMlaUp, RecomputeOp::kActivation};
    Training training(job);
    const MemoryReport report = training.memory({});
    for (const ClassMemory& memory : report.classes) {
      const Bytes kept = memory.at_peak[int(MemoryKind::kWeights)] +
                         memory.at_peak[int(MemoryKind::kGradients)] +
                         memory.at_peak[int(MemoryKind::kOptimizer)];
      // The loss is the only activation of the whole run: four bytes, on the last stage.
      CHECK(memory.after_pass.back().value - kept.value <= 4.0);
      CHECK(memory.after_pass.back().value >= kept.value);
    }
  }
}

// Both ends hold every stage: parameters twice, optimizer states cut over twice as many replicas with ZeRO-1.
TEST_CASE("DualPipe holds parameters twice") {
  TrainingJob job = scheduled_stages(PipelineKind::kDualPipe, 4, 16);
  TrainingJob once = scheduled_stages(PipelineKind::k1F1B, 4, 16);
  const int weights = int(MemoryKind::kWeights);
  Training twice(job), single(once);
  const auto of = [&](Training& training, int rank) {
    return training.memory({}).classes[rank].at_peak[weights].value;
  };
  CHECK(of(twice, 1) == Approx(of(single, 1) + of(single, 2)));
  CHECK(of(twice, 0) == Approx(of(single, 0) + of(single, 3)));
}

// Experts on a slow network: what is dispatched and combined travels while the other microbatch computes.
TEST_CASE("two microbatches side by side hide the exchange of experts") {
  TrainingJob job = small_job();
  job.plan.pp = 2;
  job.plan.dp = 4;
  job.plan.ep = 4;
  job.workload.global_batch = 32;
  World world{.nodes = 1, .per_node = 8};
  world.link = 2e7;
  const PassCost cost(1e-3, 0, 0.5e-3);
  const double alone = simulate(job, world, cost).seconds;
  job.plan.overlap_two_batch = true;
  const StepResult beside = simulate(job, world, cost);
  CHECK(beside.seconds < 0.9 * alone);
  CHECK(beside.metrics.passes.overlapped > 0);
}

TEST_CASE("folded and unfolded DualPipe agree") {
  TrainingJob job = small_job();
  job.plan.pp = 4;
  job.plan.dp = 4;
  job.plan.ep = 4;
  job.plan.zero = 1;
  job.plan.overlap_gradients = true;
  job.plan.schedule = PipelineKind::kDualPipe;
  job.workload.global_batch = 32;
  job.ranks_per_node = 4;
  World world{.nodes = 4, .per_node = 4};
  world.nic = 1e8;
  const PassCost cost(2e-5, 1e-5, 1e-5);
  const double folded = simulate(job, world, cost).seconds;
  job.plan.fold = false;
  CHECK(folded == Approx(simulate(job, world, cost).seconds).epsilon(0.005));
}
