// What travels, and what stands in memory, where gradients gather whole and weights stay gathered.
#include <catch2/catch.hpp>

#include "state_of_job.h"
#include "workloads/study/search/probe_keys.h"
#include "workloads/training/pipeline/pipeline.h"

using namespace moebius;

namespace {

constexpr int kMicrobatches = 2;  // of each replica

// ZeRO 3 over four replicas; all sizes divide by four, gradients in BF16.
TrainingJob sharded_job() {
  TrainingJob job = dense_job();
  job.plan.zero = 3;
  return job;
}

double parameters(const TrainingJob& job) {
  return count_parameters(job.model).total();
}

// Not read by the reverse pass.
double embedding(const TrainingJob& job) {
  return static_cast<double>(job.model.vocabulary) * job.model.hidden;
}

// Of a step of rank class 0, by those who meet.
double payload(const TrainingJob& job, OpKind kind, GroupRole group) {
  double bytes = 0;
  Training training(job);
  for (const Submission& submission : all_submissions(training)) {
    if (submission.rank_class != 0) continue;
    for (const Op& op : submission.fragment->ops)
      if (op.kind == kind && op.group == group) bytes += op.payload.value;
  }
  return bytes;
}

// What stands after each pass (forward, backward, forward, backward, optimizer) beyond what does without.
std::vector<double> beyond(const TrainingJob& job, const TrainingJob& without) {
  const ClassMemory more = memory_of(job), less = memory_of(without);
  std::vector<double> bytes;
  for (std::size_t i = 0; i < more.after_pass.size(); ++i)
    bytes.push_back(more.after_pass[i].value - less.after_pass[i].value);
  return bytes;
}

}  // namespace

TEST_CASE("gradients that gather whole are scattered once a step instead of once a microbatch") {
  TrainingJob job = sharded_job();
  const double p = parameters(job);
  for (const int zero : {2, 3}) {
    job.plan.zero = zero;
    job.plan.accumulation = Accumulation::kShards;
    CHECK(payload(job, OpKind::kReduceScatter, GroupRole::kData) == kMicrobatches * 2 * p);
    job.plan.accumulation = Accumulation::kWhole;
    CHECK(payload(job, OpKind::kReduceScatter, GroupRole::kData) == 2 * p);
  }
}

TEST_CASE("whole gradients stand from their first reverse pass to the end of the last one") {
  const TrainingJob shards = sharded_job();
  TrainingJob whole = shards;
  whole.plan.accumulation = Accumulation::kWhole;
  const double p = parameters(shards);
  CHECK(beyond(whole, shards) == std::vector<double>{0, 2 * p, 2 * p, 0, 0});
  const ClassMemory memory = memory_of(whole);
  const int gradients = static_cast<int>(MemoryKind::kGradients);
  CHECK(memory.resident[gradients].value == 2 * p / 4);
  CHECK(memory.at_peak[gradients].value > p);
}

TEST_CASE("whole gradients in BF16 take half of FP32's room, and are cast to what they are summed in") {
  TrainingJob shards = sharded_job();
  shards.plan.gradients = DType::kFp32;
  TrainingJob whole = shards, half = shards;
  whole.plan.accumulation = Accumulation::kWhole;
  half.plan.accumulation = Accumulation::kWholeBf16;
  const double p = parameters(shards);
  CHECK(beyond(whole, shards) == std::vector<double>{0, 4 * p, 4 * p, 0, 0});
  CHECK(beyond(half, shards) == std::vector<double>{0, 2 * p, 2 * p, 0, 0});
  for (const TrainingJob& job : {whole, half})
    CHECK(payload(job, OpKind::kReduceScatter, GroupRole::kData) == 4 * p);
  double cast = 0;
  for (const FragmentPtr& fragment : fragments_of(half))
    for (const Op& op : fragment->ops)
      if (op.kind == OpKind::kSplit && op.shape.k == 1) cast += static_cast<double>(op.shape.m * op.shape.n);
  CHECK(cast == p);
}

TEST_CASE("gradients that gather whole may be added to by kernels of their own") {
  TrainingJob job = sharded_job();
  job.plan.accumulation = Accumulation::kWhole;
  const auto sums = [&] {
    int count = 0;
    for (const FragmentPtr& fragment : fragments_of(job))
      for (const Op& op : fragment->ops)
        count += op.kind == OpKind::kAdd && fragment->tensors[fragment->input(op, 0)].scope == Scope::kStep;
    return count;
  };
  CHECK(sums() == 0);
  job.plan.separate_accumulation = true;
  CHECK(sums() > 0);
}

TEST_CASE("weights that stay gathered until the backward pass are gathered once a microbatch") {
  const TrainingJob all = sharded_job();
  TrainingJob kept = all;
  kept.plan.regather = 1;
  const double p = parameters(all);
  CHECK(payload(all, OpKind::kAllGather, GroupRole::kData) == kMicrobatches * 2 * (2 * p - embedding(all)));
  CHECK(payload(kept, OpKind::kAllGather, GroupRole::kData) == kMicrobatches * 2 * p);
  CHECK(beyond(kept, all) == std::vector<double>{2 * p, 0, 2 * p, 0, 0});
}

TEST_CASE("weights that stay gathered over all microbatches are gathered once a step") {
  const TrainingJob all = sharded_job();
  TrainingJob kept = all;
  kept.plan.regather = 1;
  kept.plan.free_after_backward = false;
  const double p = parameters(all);
  CHECK(payload(kept, OpKind::kAllGather, GroupRole::kData) == 2 * p);
  CHECK(beyond(kept, all) == std::vector<double>{2 * p, 2 * p, 2 * p, 0, 0});
}

TEST_CASE("weights of which two neighbours keep a copy are gathered again among them alone") {
  const TrainingJob all = sharded_job();
  TrainingJob kept = all;
  kept.plan.regather = 2;
  const double p = parameters(all);
  const auto neighbours = make_layout(kept.plan).classes[0].group(GroupRole::kRegather).ranks;
  CHECK(neighbours == std::vector<std::int32_t>{0, 1});
  CHECK(payload(kept, OpKind::kAllGather, GroupRole::kData) == kMicrobatches * 2 * p);
  CHECK(payload(kept, OpKind::kAllGather, GroupRole::kRegather) == kMicrobatches * 2 * (p - embedding(all)));
  CHECK(beyond(kept, all) == std::vector<double>{p, 0, p, 0, 0});
}

TEST_CASE("experts cut over no more ranks than keep a copy go back to their shards") {
  TrainingJob job = small_job();
  job.plan.ep = 2;
  job.plan.zero = 3;
  job.plan.regather = 2;
  CHECK(payload(job, OpKind::kAllGather, GroupRole::kRegather) > 0);
  CHECK(payload(job, OpKind::kAllGather, GroupRole::kExpertRegather) == 0);
  CHECK(make_layout(job.plan).classes[0].group(GroupRole::kExpertRegather).ranks.empty());
  job.plan.dp = 8;
  job.workload.global_batch = 16;
  CHECK(payload(job, OpKind::kAllGather, GroupRole::kExpertRegather) > 0);
}

TEST_CASE("weights that are frozen beside adapters are freed as others are") {
  TrainingJob job = sharded_job();
  job.plan.regather = 1;
  job.workload.adapters.rank = 4;
  job.workload.adapters.targets = {AdapterTarget::kQkv};
  const TrainingJob kept = job;
  job.plan.regather = 0;
  CHECK(beyond(kept, job).back() == 0);
}

TEST_CASE("plans say what stands whole, and searches lower those apart that gather otherwise") {
  TrainingJob job = sharded_job();
  const std::string all = lowering_key(job.plan, job.workload), groups = groups_key(job.plan);
  job.plan.accumulation = Accumulation::kWholeBf16;
  CHECK(lowering_key(job.plan, job.workload) != all);
  CHECK(groups_key(job.plan) == groups);
  job.plan.accumulation = Accumulation::kWhole;
  job.plan.regather = 2;
  CHECK(lowering_key(job.plan, job.workload) != all);
  CHECK(groups_key(job.plan) != groups);
  const std::string told =
      "; between passes in copies over 2, gathered again there; gradients whole until the last microbatch\n";
  CHECK(Training(job).describe().find(told) != std::string::npos);
}

// One copy stands on a rank, whatever microbatches are on their way: the first of them gathers, and those
// that follow, until a backward pass frees it.
TEST_CASE("forward passes that run ahead of a pipeline's backward passes find what the first has gathered") {
  TrainingJob job = sharded_job();
  job.plan.pp = 2;
  job.plan.dp = 2;
  job.workload.global_batch = 8;  // four microbatches: F0 F1 B0 F2 B1 F3 B2 B3 on the first stage
  job.plan.regather = 1;
  const auto passes = pipeline_passes(pipeline_spec(job.plan, 4))[0];
  std::vector<std::pair<WeightsStand, WeightsStand>> stands;
  for (const Pass& pass : passes)
    if (pass.kind != PassKind::kOptimizer) stands.emplace_back(pass.weights.found, pass.weights.left);
  constexpr WeightsStand kCut = WeightsStand::kCut, kWhole = WeightsStand::kWhole;
  CHECK(stands == std::vector<std::pair<WeightsStand, WeightsStand>>{{kCut, kWhole},
                                                                      {kWhole, kWhole},
                                                                      {kWhole, kCut},
                                                                      {kCut, kWhole},
                                                                      {kWhole, kCut},
                                                                      {kCut, kWhole},
                                                                      {kWhole, kCut},
                                                                      {kCut, kCut}});
  job.plan.free_after_backward = false;
  const auto once = pipeline_passes(pipeline_spec(job.plan, 4))[0];
  for (const Pass& pass : once) {
    if (pass.kind == PassKind::kOptimizer) continue;
    CHECK((pass.weights.found == kCut) == (pass.part == PassPart{0, 0} && pass.runs_forward()));
    CHECK((pass.weights.left == kCut) == pass.last);
  }
}
