// Hybrid recomputation: what is computed again under a budget.
#include <catch2/catch.hpp>

#include "hw/document.h"
#include "state_of_job.h"
#include "tests/process.h"

using namespace moebius;

namespace {

// Budgets between what full recomputation takes and what keeping everything takes, of one stage that keeps as
// many microbatches as 1F1B lets it.
TrainingJob hybrid_job() {
  TrainingJob job = small_job();
  job.plan.recompute_flops = {1e14};
  job.plan.recompute_memory = {1e12};
  return job;
}

// Of the reverse pass of a microbatch, each op at its roofline.
double reverse_seconds(const TrainingJob& job) {
  double seconds = 0;
  const FragmentPtr reverse = fragments_of(job)[1];
  for (const Op& op : reverse->ops) {
    if (is_communication(op.kind)) continue;
    seconds += std::max(op_flops(op.kind, op.shape) / job.plan.recompute_flops,
                        op_bytes(op.kind, op.shape, op.dtype) / job.plan.recompute_memory);
  }
  return seconds;
}

}  // namespace

TEST_CASE("hybrid recomputation stays in its budget and computes no longer again than whole layers") {
  TrainingJob job = hybrid_job();
  const double keeps = memory_of(job).peak.value, kept_seconds = reverse_seconds(job);
  job.plan.recompute = RecomputePolicy::kFull;
  const double least = memory_of(job).peak.value, full_seconds = reverse_seconds(job);
  REQUIRE(least < keeps);
  REQUIRE(kept_seconds < full_seconds);
  job.plan.recompute = RecomputePolicy::kHybrid;
  for (const double share : {0.0, 0.25, 0.5, 0.75}) {
    job.plan.recompute_budget = {least + share * (keeps - least)};
    CHECK(memory_of(job).peak <= job.plan.recompute_budget);
    CHECK(reverse_seconds(job) > kept_seconds);
    CHECK(reverse_seconds(job) <= full_seconds);
  }
  job.plan.recompute_budget = {keeps};
  CHECK(reverse_seconds(job) == kept_seconds);
}

// What is computed again for the gradients of inputs stays for those of weights.
TEST_CASE("where nothing fits its budget hybrid recomputation fills the least that it can") {
  for (const PipelineKind schedule : {PipelineKind::k1F1B, PipelineKind::kZbH1}) {
    TrainingJob job = hybrid_job();
    job.plan.schedule = schedule;
    const Bytes keeps = memory_of(job).peak;
    job.plan.recompute = RecomputePolicy::kFull;
    const Bytes full = memory_of(job).peak;
    job.plan.recompute = RecomputePolicy::kHybrid;
    job.plan.recompute_budget = {1};
    job.plan.keeps_to_budget = false;
    CAPTURE(static_cast<int>(schedule), keeps.value, full.value);
    CHECK(memory_of(job).peak.value == std::min(keeps.value, full.value));
  }
}

// The second of a rank's two stages has neither the embedding nor the loss, whose tensors belong to no layer.
TEST_CASE("hybrid recomputation chooses among what a stage computes in reverse") {
  const test::Scratch scratch;
  const std::string scenario = scratch.write("s.json", R"({
    "moebius": 1, "kind": "training", "name": "hybrid", "model": "qwen3-30b-a3b",
    "cluster": {"pools": [{"name": "a", "accelerator": "kunlun-p800", "node": "hgx-8", "nodes": 1}],
                "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
    "plan": {"pp": {"degree": 2, "schedule": "zb-v"}, "ep": {"degree": 4}, "dp": {"zero": 3},
             "recompute": {"policy": "hybrid"}, "offload": {"optimizer": true}},
    "workload": {"sequence_length": 8192, "global_batch": 32, "micro_batch": 1}})");
  const auto run = test::run_moebius("run " + scenario + " --detail alpha-beta");
  INFO(run.err);
  CHECK(run.exit_code == 0);
}

// Where nothing fits, hybrid recomputation does what whole layers do, and passes come in the same order.
TEST_CASE("a V of stages that compute all again is laid out by what that takes") {
  const test::Scratch scratch;
  const std::string scenario = scratch.write("s.json", R"({
    "moebius": 1, "kind": "training", "name": "hybrid", "model": {"base": "qwen3-30b-a3b", "layers": 16},
    "cluster": {"pools": [{"name": "a", "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}],
                "fabric": {"type": "rail-optimised-clos", "nic": "400 Gb/s"}},
    "plan": {"pp": {"degree": 4, "schedule": "zb-v"}, "ep": {"degree": 2}, "dp": {"zero": 1}, "memory": "report"},
    "workload": {"sequence_length": 4096, "global_batch": 32, "micro_batch": 1}})");
  const auto seconds = [&](const std::string& recompute) {
    const auto run = test::run_moebius(
        "run " + scenario + " --detail alpha-beta --json --set '/plan/recompute=" + recompute + "'");
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return parse_document(run.out, "report").root.find("step_time_s")->number;
  };
  CHECK(seconds(R"({"policy": "hybrid", "budget": "1 MB"})") == seconds(R"({"policy": "full"})"));
}

// The two stages of a rank do not fill most at the same moment: judged one by one they would be refused.
TEST_CASE("several stages of a rank share one budget, which their sum may exceed") {
  for (const PipelineKind kind : {PipelineKind::kZbV, PipelineKind::kDualPipeV, PipelineKind::kInterleaved}) {
    TrainingJob job = hybrid_job();
    job.plan.pp = 2, job.plan.dp = job.plan.ep = 1;
    job.plan.schedule = kind;
    job.plan.chunks = kind == PipelineKind::kInterleaved ? 2 : 1;
    const auto peak = [&] { return Training(job).memory({1e9}).peak().value; };
    const double keeps = peak();
    job.plan.recompute = RecomputePolicy::kFull;
    const double least = peak();
    REQUIRE(least < keeps);
    CAPTURE(static_cast<int>(kind), least, keeps);
    job.plan.recompute = RecomputePolicy::kHybrid;
    double last = 0;
    for (const double share : {0.0, 0.3, 0.6, 1.0}) {
      job.plan.recompute_budget = {least + share * (keeps - least)};
      const double filled = peak();
      CHECK(filled <= job.plan.recompute_budget.value);
      CHECK(filled >= last);
      last = filled;
    }
    CHECK(last == keeps);
  }
}

TEST_CASE("a budget that whole layers do not fit in is an error that names it") {
  TrainingJob job = hybrid_job();
  job.plan.recompute = RecomputePolicy::kHybrid;
  job.plan.recompute_budget = {1e4};
  CHECK_THROWS_WITH(memory_of(job), Catch::Contains("stage 0 does not fit in its budget of 10 kB"));
  job.plan.keeps_to_budget = false;  // "memory": "report"
  const auto hybrid = memory_of(job);
  job.plan.recompute = RecomputePolicy::kFull;
  CHECK(hybrid.peak.value == memory_of(job).peak.value);
}

// A forward pass beside a backward pass fills less than before it.
TEST_CASE("pairs of one stage fill a budget as they stand beside each other") {
  TrainingJob job = hybrid_job();
  job.model.layers = 8;
  job.plan.pp = 2;
  job.plan.overlap_two_batch = true;
  job.workload.global_batch = 32;
  const auto peak = [&] { return Training(job).memory({1e9}).peak().value; };
  const double keeps = peak();
  job.plan.recompute = RecomputePolicy::kFull;
  const double least = peak();
  REQUIRE(least < keeps);
  job.plan.recompute = RecomputePolicy::kHybrid;
  job.plan.recompute_budget = {least};
  CHECK(peak() <= least);
  job.plan.recompute_budget = {keeps};
  CHECK(peak() == keeps);
}

// One expert takes nearly all tokens' first choice in the second step.
TEST_CASE("hybrid recomputation keeps to its budget where later steps draw fuller experts") {
  for (const PipelineKind kind : {PipelineKind::k1F1B, PipelineKind::kInterleaved}) {
    TrainingJob job = hybrid_job();
    job.plan.schedule = kind;
    if (kind == PipelineKind::kInterleaved) job.plan.pp = job.plan.chunks = 2;
    std::map<int, std::vector<double>> even, skewed;
    for (int layer = 0; layer < job.model.layers; ++layer) {
      even[layer].assign(job.model.experts.routed, 1);
      skewed[layer] = even[layer];
      skewed[layer].front() = 100;
    }
    job.workload.popularity.kind = PopularityKind::kRecorded;
    job.workload.popularity.recorded = std::make_shared<const RecordedLoads>(std::vector{even, skewed});
    job.workload.steps = 2;
    const auto peak = [&] { return Training(job).memory({1e9}).peak().value; };
    const double keeps = peak();
    job.plan.recompute = RecomputePolicy::kFull;
    const double least = peak();
    REQUIRE(least < keeps);
    job.plan.recompute = RecomputePolicy::kHybrid;
    for (const double share : {0.5, 0.75, 0.9}) {
      CAPTURE(static_cast<int>(kind), share);
      job.plan.recompute_budget = {least + share * (keeps - least)};
      CHECK(peak() <= job.plan.recompute_budget.value);
    }
  }
}

// What is missing is not always a microbatch's part of what is too much: another moment may be the peak then.
TEST_CASE("a larger budget of hybrid recomputation computes no longer") {
  for (const int layers : {4, 5, 7}) {
    TrainingJob job = hybrid_job();
    job.model.layers = layers;
    const double keeps = memory_of(job).peak.value;
    job.plan.recompute = RecomputePolicy::kFull;
    const double least = memory_of(job).peak.value;
    job.plan.recompute = RecomputePolicy::kHybrid;
    double before = std::numeric_limits<double>::infinity();
    for (int step = 0; step <= 16; ++step) {
      CAPTURE(layers, step);
      job.plan.recompute_budget = {least + step * (keeps - least) / 16};
      const double seconds = reverse_seconds(job);
      CHECK(memory_of(job).peak <= job.plan.recompute_budget);
      CHECK(seconds <= before * 1.01);  // items free whole units: not to the last byte
      before = seconds;
    }
  }
}

namespace {

// Of the first pass: bytes to the host.
double copied(const TrainingJob& job) {
  double bytes = 0;
  const FragmentPtr forward = fragments_of(job).front();
  for (const Op& op : forward->ops) {
    if (op.kind == OpKind::kCopyToHost) bytes += op.payload.value;
  }
  return bytes;
}

// Forward and back, where copies run beside what is computed.
double seconds_with_copies(const TrainingJob& job) {
  double seconds = 0;
  const std::vector<FragmentPtr> passes = fragments_of(job);
  for (int i = 0; i < 2; ++i) {
    double computed = 0, moved = 0;
    for (const Op& op : passes[i]->ops) {
      if (is_host_copy(op.kind)) moved += op.payload / job.plan.recompute_host;
      if (is_communication(op.kind)) continue;
      computed += std::max(op_flops(op.kind, op.shape) / job.plan.recompute_flops,
                           op_bytes(op.kind, op.shape, op.dtype) / job.plan.recompute_memory);
    }
    seconds += std::max(computed, moved);
  }
  return seconds;
}

}  // namespace

TEST_CASE("hybrid recomputation computes again what would take longer to go to the host and come back") {
  TrainingJob job = hybrid_job();
  job.model.layers = 8;
  job.plan.offload.activations = true;
  job.plan.recompute_host = {1e15};
  const double all = copied(job);
  job.plan.recompute = RecomputePolicy::kHybrid;
  job.plan.recompute_budget = {1e9};
  CHECK(copied(job) == all);
  for (const double rate : {1e9, 1e10, 3e10}) {
    CAPTURE(rate);
    job.plan.recompute_host = {rate};
    TrainingJob keeps = job;
    keeps.plan.recompute = RecomputePolicy::kNone;
    CHECK(copied(job) < all);
    CHECK(seconds_with_copies(job) < seconds_with_copies(keeps));
  }
}

// Of all that its stages compute in reverse, each op at its roofline.
TEST_CASE("a larger budget of several stages computes no longer") {
  for (const PipelineKind kind : {PipelineKind::kZbV, PipelineKind::kDualPipeV, PipelineKind::kInterleaved}) {
    TrainingJob job = hybrid_job();
    job.model.layers = 8;
    job.plan.pp = 2, job.plan.dp = job.plan.ep = 1;
    job.plan.schedule = kind;
    job.plan.chunks = kind == PipelineKind::kInterleaved ? 2 : 1;
    const auto peak = [&] { return Training(job).memory({1e9}).peak().value; };
    const auto seconds = [&] {
      double sum = 0;
      for (const FragmentPtr& fragment : fragments_of(job)) {
        for (const Op& op : fragment->ops) {
          if (is_communication(op.kind) || op.phase == Phase::kOptimizer) continue;
          sum += std::max(op_flops(op.kind, op.shape) / job.plan.recompute_flops,
                          op_bytes(op.kind, op.shape, op.dtype) / job.plan.recompute_memory);
        }
      }
      return sum;
    };
    const double keeps = peak();
    job.plan.recompute = RecomputePolicy::kFull;
    const double least = peak();
    job.plan.recompute = RecomputePolicy::kHybrid;
    double before = std::numeric_limits<double>::infinity();
    for (int step = 0; step <= 8; ++step) {
      CAPTURE(static_cast<int>(kind), step);
      job.plan.recompute_budget = {least + step * (keeps - least) / 8};
      CHECK(peak() <= job.plan.recompute_budget.value);
      const double now = seconds();
      CHECK(now <= before * 1.01);
      before = now;
    }
  }
}
