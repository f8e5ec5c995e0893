// Experts' buffers that are filled up to a capacity, and tokens that one-hot products put there.
#include <algorithm>

#include <catch2/catch.hpp>

#include "state_of_job.h"
#include "workloads/cost/separate_kernels.h"
#include "workloads/schedule/work.h"
#include "workloads/study/search/probe_keys.h"
#include "workloads/training/layers/lowering.h"

using namespace moebius;

namespace {

// 32 tokens of a rank choose two of eight experts: twelve rows are one and a half times the mean. Three of
// four layers have experts.
constexpr int kOfExpert = 12, kPlaces = 8 * kOfExpert, kOwnTokens = 32, kMixtures = 3;

TrainingJob filled_job(ExpertBuffers buffers) {
  TrainingJob job = small_job();
  job.plan.capacity = 1.5;
  job.plan.expert_buffers = buffers;
  job.plan.exchange = Algorithm::kLibrary;
  job.workload.popularity = {PopularityKind::kZipf, 1.0, false};
  return job;
}

FragmentPtr pass_with(const TrainingJob& job, Phase phase) {
  for (const FragmentPtr& fragment : fragments_of(job))
    if (fragment->phase == phase) return fragment;
  FAIL("no such pass");
  return nullptr;
}

std::vector<Op> masked_products(const Fragment& fragment, OpKind kind) {
  std::vector<Op> found;
  for (const Op& op : fragment.ops)
    if (op.kind == kind && op.role == Role::kExperts) found.push_back(op);
  return found;
}

double mask_flops(const std::vector<Op>& ops) {
  double sum = 0;
  for (const Op& op : ops) sum += op_flops(op.kind, op.shape).value;
  return sum;
}

int number_of(const Fragment& fragment, OpKind kind) {
  return static_cast<int>(
      std::count_if(fragment.ops.begin(), fragment.ops.end(), [&](const Op& op) { return op.kind == kind; }));
}

}  // namespace

TEST_CASE("an expert's limit is one of all that a rank has of a microbatch, or of each sequence") {
  TrainingPlan plan;
  Experts experts;
  experts.routed = 8, experts.active = 2;
  CHECK(capacity_of(plan, experts, 64, 2).of_rank() == 0);
  plan.capacity = 1.3;
  CHECK(capacity_of(plan, experts, 64, 2).of_rank() == 21);  // 20.8
  plan.capacity_of_sequence = true;
  CHECK(capacity_of(plan, experts, 64, 2).rows == 11);  // 10.4
  CHECK(capacity_of(plan, experts, 64, 2).groups == 2);
}

TEST_CASE("every rank multiplies and sends full buffers, however uneven the choice") {
  for (const ExpertBuffers buffers : {ExpertBuffers::kPadded, ExpertBuffers::kOneHot}) {
    const TrainingJob job = filled_job(buffers);
    const FragmentPtr forward = pass_with(job, Phase::kForward);
    for (const Op& op : forward->ops) {
      for (int member = 0; member < 4; ++member) {
        if (op.kind == OpKind::kGroupedGemm)
          CHECK(member_shape(op, *forward, member).m == 4 * 2 * kOfExpert);  // of four ranks, for two experts
        const bool exchange = op.kind == OpKind::kDispatch || op.kind == OpKind::kCombine;
        if (exchange) CHECK(carried_bytes(op, *forward, 4, member) == op.payload.value * 3 * 2 * kOfExpert);
      }
    }
  }
  const FragmentPtr came = pass_with(filled_job(ExpertBuffers::kRows), Phase::kForward);
  for (const Op& op : came->ops) {
    if (op.kind != OpKind::kGroupedGemm) continue;
    std::set<std::int64_t> rows;
    for (int member = 0; member < 4; ++member) rows.insert(member_shape(op, *came, member).m);
    CHECK(rows.size() > 1);
  }
}

// Gradients of the first mask, which is one of truth values, nobody asks for.
TEST_CASE("one-hot products put rows into buffers and take them out, twice forward and three times back") {
  const TrainingJob job = filled_job(ExpertBuffers::kOneHot);
  const FragmentPtr forward = pass_with(job, Phase::kForward), back = pass_with(job, Phase::kBackward);
  const double one = 2.0 * kOwnTokens * kPlaces * job.model.hidden;
  CHECK(mask_flops(masked_products(*forward, OpKind::kGemm)) == kMixtures * 2 * one);
  CHECK(mask_flops(masked_products(*back, OpKind::kGemmDgrad)) == kMixtures * 3 * one);
  CHECK(masked_products(*back, OpKind::kGemm).empty());
  // Weights stay where their tokens are: rows travel alone, and are sorted once, where they arrive.
  for (const Op& op : forward->ops) {
    if (op.kind == OpKind::kDispatch) {
      CHECK(op.num_inputs == 1);
      CHECK(op.payload.value == job.model.hidden * 2.0);
      CHECK(op.shape.m == kPlaces);
    }
    if (op.kind == OpKind::kPermute) CHECK(op.shape.heads == 0);
    if (op.kind == OpKind::kActivation && op.role == Role::kExpertGateUp) CHECK(op.num_inputs == 1);
  }
  const FragmentPtr padded = pass_with(filled_job(ExpertBuffers::kPadded), Phase::kForward);
  CHECK(masked_products(*padded, OpKind::kGemm).empty());
  for (const Op& op : padded->ops)
    if (op.kind == OpKind::kPermute) CHECK(op.shape.heads == kSortedTwiceFused);
}

// Of a mask that is one of both sequences half is for the other one.
TEST_CASE("masks of single sequences are multiplied by half as much as that of two") {
  TrainingJob job = filled_job(ExpertBuffers::kOneHot);
  job.workload.micro_batch = 2;
  const double whole = mask_flops(masked_products(*pass_with(job, Phase::kForward), OpKind::kGemm));
  job.plan.capacity_of_sequence = true;
  const std::vector<Op> products = masked_products(*pass_with(job, Phase::kForward), OpKind::kGemm);
  CHECK(mask_flops(products) == whole / 2);
  CHECK(products[0].shape.m == 2 * kPlaces);
  CHECK(products[0].shape.k == kOwnTokens);
  CHECK(products[1].shape.m == 2 * kOwnTokens);
  CHECK(products[1].shape.k == kPlaces);
}

TEST_CASE("experts of the only rank read what masks put there") {
  TrainingJob job = filled_job(ExpertBuffers::kOneHot);
  job.plan.ep = 1;
  job.plan.exchange = Algorithm::kAuto;
  const FragmentPtr forward = pass_with(job, Phase::kForward), back = pass_with(job, Phase::kBackward);
  for (const OpKind kind : {OpKind::kDispatch, OpKind::kCombine, OpKind::kPermute, OpKind::kUnpermute})
    CHECK(number_of(*forward, kind) + number_of(*back, kind) == 0);
  for (const Op& op : forward->ops)
    if (op.kind == OpKind::kGroupedGemm) CHECK(op.shape.m == kPlaces);
  CHECK(masked_products(*back, OpKind::kGemmDgrad).size() == 3 * kMixtures);
  job.plan.expert_buffers = ExpertBuffers::kPadded;
  const FragmentPtr padded = pass_with(job, Phase::kForward);
  CHECK(number_of(*padded, OpKind::kPermute) == kMixtures);
  for (const Op& op : padded->ops)
    if (op.kind == OpKind::kGroupedGemm) CHECK(op.shape.m == kPlaces);
}

// Two ranks share four experts: twelve rows from each of two groups of two.
TEST_CASE("ranks that share experts gather each other's full buffers") {
  for (const ExpertBuffers buffers : {ExpertBuffers::kPadded, ExpertBuffers::kOneHot}) {
    TrainingJob job = filled_job(buffers);
    job.plan.ep = job.plan.expert_tp = 2;
    const FragmentPtr forward = pass_with(job, Phase::kForward);
    const double row = job.model.hidden * 2.0;
    for (const Op& op : forward->ops) {
      if (op.kind == OpKind::kGroupedGemm) CHECK(op.shape.m == 4 * 2 * 2 * kOfExpert);
      const bool rows = op.kind == OpKind::kAllGather && op.shape.n == job.model.hidden;
      if (rows && op.group == GroupRole::kExpertTensor)
        CHECK(op.payload.value == Approx(4 * 2 * 2 * kOfExpert * row));
    }
  }
}

TEST_CASE("layers that run again multiply by their masks again, those that stop early not by the last one") {
  TrainingJob job = filled_job(ExpertBuffers::kOneHot);
  job.plan.recompute = RecomputePolicy::kFull;
  CHECK(masked_products(*pass_with(job, Phase::kBackward), OpKind::kGemm).size() == 2 * kMixtures);
  const Bytes full = memory_of(job).peak;
  job.plan.recompute_stops = true;
  const FragmentPtr stops = pass_with(job, Phase::kBackward);
  CHECK(masked_products(*stops, OpKind::kGemm).size() == kMixtures);
  CHECK(number_of(*stops, OpKind::kCombine) == 2 * kMixtures);  // of what it brings a mask's gradient is
  job.plan.recompute = RecomputePolicy::kSelective;
  job.plan.recompute_stops = false;
  job.plan.recompute_ops = {RecomputeOp::kPermute, RecomputeOp::kDispatch};
  CHECK(masked_products(*pass_with(job, Phase::kBackward), OpKind::kGemm).size() == kMixtures);
  const Bytes selective = memory_of(job).peak;
  job.plan.recompute_ops.push_back(RecomputeOp::kGate);
  CHECK(memory_of(job).peak < selective);  // the masks, too
  job.plan.recompute = RecomputePolicy::kNone;
  CHECK(selective < memory_of(job).peak);
  CHECK(full < selective);
}

TEST_CASE("split passes and pairs of them have one-hot products, too") {
  for (const PipelineKind schedule : {PipelineKind::kZbH1, PipelineKind::kDualPipe}) {
    TrainingJob job = filled_job(ExpertBuffers::kOneHot);
    job.plan.pp = 2;
    job.plan.schedule = schedule;
    job.workload.global_batch = 16;
    double forward = 0, back = 0;
    Training training(job);
    for (const Submission& submission : all_submissions(training)) {
      forward += mask_flops(masked_products(*submission.fragment, OpKind::kGemm));
      back += mask_flops(masked_products(*submission.fragment, OpKind::kGemmDgrad));
    }
    CHECK(forward > 0);
    CHECK(back == Approx(1.5 * forward));
  }
}

TEST_CASE("memory holds full buffers and masks, whoever is chosen") {
  const auto peak = [](ExpertBuffers buffers, double capacity, PopularityKind kind) {
    TrainingJob job = filled_job(buffers);
    job.plan.capacity = capacity;
    job.workload.popularity.kind = kind;
    return Training(job).memory({1e12}).peak().value;
  };
  for (const ExpertBuffers buffers : {ExpertBuffers::kPadded, ExpertBuffers::kOneHot}) {
    const double zipf = peak(buffers, 1.5, PopularityKind::kZipf);
    CHECK(zipf == Approx(peak(buffers, 1.5, PopularityKind::kBalanced)));
    CHECK(zipf < peak(buffers, 3, PopularityKind::kZipf));
  }
  // Three bytes for each place of each token, and the rows that a mask's gradient is of.
  const double masks = 3.0 * kMixtures * kOwnTokens * kPlaces;
  CHECK(peak(ExpertBuffers::kOneHot, 1.5, PopularityKind::kBalanced) >
        peak(ExpertBuffers::kPadded, 1.5, PopularityKind::kBalanced) + masks);
}

TEST_CASE("plans of other buffers are lowered for themselves") {
  TrainingJob job = filled_job(ExpertBuffers::kRows);
  const std::string rows = lowering_key(job.plan, job.workload);
  job.plan.expert_buffers = ExpertBuffers::kPadded;
  const std::string padded = lowering_key(job.plan, job.workload);
  job.plan.capacity_of_sequence = true;
  CHECK(padded != rows);
  CHECK(lowering_key(job.plan, job.workload) != padded);
}
