// FP8 training pays every quantisation once: as an op of its own, fused into the norm or activation before,
// or before the tokens travel. GEMMs themselves never quantise (CostQuery::fused_quantise stays false), so
// that the times that they are told contain none.
#include <catch2/catch.hpp>

#include <set>

#include "small_job.h"
#include "workloads/cost/op_costs.h"
#include "workloads/cost/separate_kernels.h"

namespace moebius {
namespace {

bool multiplies(OpKind kind) {
  return kind == OpKind::kGemm || kind == OpKind::kGemmDgrad || kind == OpKind::kGemmWgrad ||
         kind == OpKind::kGroupedGemm || kind == OpKind::kGroupedGemmDgrad ||
         kind == OpKind::kGroupedGemmWgrad;
}

TrainingJob fp8_job(bool fused, DType dispatch) {
  TrainingJob job = small_job();
  job.plan.gemm = DType::kFp8;
  job.plan.fused_quantise = fused;
  job.plan.dispatch = dispatch;
  return job;
}

struct Counts {
  int products = 0, passes = 0, fused = 0;
};

// From which tensors in which way an 8-bit copy was made: the second time would be paid twice.
Counts check_fragment(const Fragment& fragment) {
  Counts counts;
  std::set<std::pair<std::int32_t, OpKind>> quantised;
  for (const Op& op : fragment.ops) {
    if (multiplies(op.kind) && op.dtype == DType::kFp8) {
      ++counts.products;
      CHECK(fragment.tensors[static_cast<std::size_t>(fragment.input(op, 0))].dtype == DType::kFp8);
      if (is_weight_gradient(op.kind))
        CHECK(fragment.tensors[static_cast<std::size_t>(fragment.input(op, 1))].dtype == DType::kFp8);
    }
    if (op.kind == OpKind::kQuantise || op.kind == OpKind::kTransposeQuantise) {
      ++counts.passes;
      CHECK(quantised.insert({fragment.input(op, 0), op.kind}).second);
    }
    if ((op.kind == OpKind::kNorm || op.kind == OpKind::kActivation) && op.num_outputs == 2) {
      ++counts.fused;
      CHECK(quantised.insert({fragment.output(op, 0), OpKind::kQuantise}).second);
    }
  }
  return counts;
}

Counts check_job(const TrainingJob& job) {
  Training training(job);
  Counts all;
  for (const Submission& submission : all_submissions(training)) {
    const Counts counts = check_fragment(*submission.fragment);
    all.products += counts.products;
    all.passes += counts.passes;
    all.fused += counts.fused;
  }
  return all;
}

TEST_CASE("every operand of an FP8 product was quantised once, by someone") {
  for (const DType dispatch : {DType::kBf16, DType::kFp8}) {
    const Counts apart = check_job(fp8_job(false, dispatch)), fused = check_job(fp8_job(true, dispatch));
    CHECK(apart.products > 0);
    CHECK(apart.products == fused.products);
    CHECK(apart.fused == 0);
    CHECK(fused.fused > 0);
    CHECK(apart.passes == fused.passes + fused.fused);
  }
}

TEST_CASE("a plan with another recipe of scales has it in all FP8 tensors and in no other") {
  for (const Scaling scaling : {Scaling::kTensor, Scaling::kMicro, Scaling::kHistory}) {
    TrainingJob job = fp8_job(false, DType::kBf16);
    job.plan.scaling = scaling;
    Training training(job);
    int low = 0, others = 0;
    for (const Submission& submission : all_submissions(training)) {
      for (const Tensor& tensor : submission.fragment->tensors) {
        CHECK((tensor.scaling == scaling) == (tensor.dtype == DType::kFp8));
        ++(tensor.dtype == DType::kFp8 ? low : others);
      }
    }
    CHECK(low > 0);
    CHECK(others > 0);
  }
}

// Ops of a fragment that share magnitudes; each stands in the way of what computes next.
int shares(const Fragment& fragment) {
  int ops = 0;
  for (const Op& op : fragment.ops) {
    if (op.group != GroupRole::kScales) continue;
    CHECK(op.kind == OpKind::kAllReduce);
    CHECK(op.lane == Lane::kCompute);
    CHECK(op.payload.value == 4.0 * static_cast<double>(op.shape.m));
    ++ops;
  }
  return ops;
}

// Transformer Engine: once at the end of a forward pass, once at that of a backward pass, in no update. Alone
// in its group of tensor-parallel ranks a rank shares nothing; other recipes have no history.
TEST_CASE("delayed scaling shares what a pass found of magnitudes with the ranks of its stage") {
  TrainingJob job = fp8_job(false, DType::kBf16);
  job.plan.scaling = Scaling::kHistory;
  job.plan.pp = 2;
  for (const PipelineKind schedule : {PipelineKind::k1F1B, PipelineKind::kZbH1}) {
    job.plan.schedule = schedule;
    Training training(job);
    int passes = 0;
    for (const Submission& submission : all_submissions(training)) {
      const Phase phase = submission.fragment->phase;
      const bool multiplies_back = phase == Phase::kForward || phase == Phase::kBackward;
      CHECK(shares(*submission.fragment) == (multiplies_back ? 1 : 0));
      passes += multiplies_back;
    }
    CHECK(passes == 2 * job.plan.pp * job.workload.num_microbatches(job.plan));
  }
  job.plan.history_of_tensor_ranks = true;
  Training alone(job);
  for (const Submission& submission : all_submissions(alone)) CHECK(shares(*submission.fragment) == 0);
  job.plan.scaling = Scaling::kTensor;
  Training current(job);
  for (const Submission& submission : all_submissions(current)) CHECK(shares(*submission.fragment) == 0);
}

struct Passes {
  int of_rows = 0, of_columns = 0, both = 0, largest = 0, products = 0;
};

Passes passes_of(const TrainingJob& job) {
  Passes passes;
  Training training(job);
  for (const Submission& submission : all_submissions(training)) {
    for (const Op& op : submission.fragment->ops) {
      passes.products += multiplies(op.kind) && op.dtype == DType::kFp8;
      passes.largest += op.kind == OpKind::kLargest;
      passes.of_columns += op.kind == OpKind::kTransposeQuantise;
      if (op.kind == OpKind::kQuantise) ++(op.num_outputs == 2 ? passes.both : passes.of_rows);
    }
  }
  return passes;
}

// Blocks: an operand is quantised for its product, and again for the weight gradient. MXFP8: one pass makes
// both copies. One scale for the tensor: the same, after a pass that finds its largest magnitude, unless that
// is taken from the steps before.
TEST_CASE("the four recipes of FP8 differ in their passes, not in their products") {
  TrainingJob job = fp8_job(false, DType::kBf16);
  const Passes block = passes_of(job);
  job.plan.scaling = Scaling::kMicro;
  const Passes micro = passes_of(job);
  job.plan.scaling = Scaling::kTensor;
  const Passes tensor = passes_of(job);
  CHECK(block.products == micro.products);
  CHECK(block.products == tensor.products);
  CHECK(block.both == 0);
  CHECK(block.of_rows == micro.both);
  CHECK(block.of_columns == micro.both + micro.of_columns);
  CHECK(micro.of_rows == 0);
  CHECK(micro.largest == 0);
  CHECK(tensor.both == micro.both);
  CHECK(tensor.largest == tensor.both + tensor.of_columns);
  job.plan.scaling = Scaling::kHistory;
  const Passes history = passes_of(job);
  CHECK(history.products == block.products);
  CHECK(history.both == micro.both);
  CHECK(history.of_columns == micro.of_columns);
  CHECK(history.largest == 0);
}

// Scales of 32 elements of a row go with it: 8 bits and a byte a scale, beside four bytes for each weight.
// What comes is multiplied as it came, and cast anew along the tokens for the weight gradient.
TEST_CASE("MXFP8 tokens travel with their scales, and only what is multiplied is quantised both ways") {
  TrainingJob job = fp8_job(false, DType::kBf16);
  job.plan.scaling = Scaling::kMicro;
  const Passes half = passes_of(job);
  job.plan.dispatch = DType::kFp8;
  const Passes low = passes_of(job);
  CHECK(low.products == half.products);
  CHECK(low.of_rows > 0);
  int dispatches = 0;
  Training training(job);
  for (const Submission& submission : all_submissions(training)) {
    const Fragment& fragment = *submission.fragment;
    for (const Op& op : fragment.ops) {
      if (op.kind != OpKind::kDispatch) continue;
      ++dispatches;
      for (const std::int32_t tensor : {fragment.input(op, 0), fragment.output(op, 0)}) {
        CHECK(fragment.tensors[tensor].dtype == DType::kFp8);
        CHECK(fragment.tensors[tensor].scaling == Scaling::kMicro);
      }
      const double row = job.model.hidden * (1 + 1.0 / 32);
      const double weights = op.phase == Phase::kForward ? 4.0 * job.model.experts.active : 0;
      CHECK(op.payload.value == Approx(row + weights));
    }
  }
  CHECK(low.of_rows <= dispatches);  // shared experts may have quantised the same tokens
  CHECK(low.both == half.both - dispatches);
  CHECK(low.of_columns == half.of_columns + dispatches);
}

TEST_CASE("norms and activations before MXFP8 products may write both copies") {
  for (const DType dispatch : {DType::kBf16, DType::kFp8}) {
    TrainingJob job = fp8_job(false, dispatch);
    job.plan.scaling = Scaling::kMicro;
    const Passes apart = passes_of(job);
    job.plan.fused_quantise = true;
    const Passes within = passes_of(job);
    int fused = 0;
    Training training(job);
    for (const Submission& submission : all_submissions(training)) {
      for (const Op& op : submission.fragment->ops) {
        if ((op.kind != OpKind::kNorm && op.kind != OpKind::kActivation) || op.num_outputs == 1) continue;
        ++fused;
        CHECK(op.num_outputs == 3);
        CHECK(op.shape.heads == kWithColumns);
      }
    }
    CHECK(fused > 0);
    CHECK(within.products == apart.products);
    CHECK(within.both == apart.both - fused);
    CHECK(within.of_rows == apart.of_rows);
    CHECK(within.of_columns == apart.of_columns);
  }
}

TEST_CASE("weights in BF16 are quantised once a step, whatever the number of microbatches") {
  const auto count = [](int batch) {
    TrainingJob job = fp8_job(false, DType::kBf16);
    job.plan.scaling = Scaling::kTensor;
    job.plan.half_weights = true;
    job.plan.zero = 1;
    job.workload.global_batch = batch;
    Training training(job);
    int weights = 0;
    for (const Submission& submission : all_submissions(training)) {
      for (const Op& op : submission.fragment->ops)
        weights += op.kind == OpKind::kQuantise && op.phase == Phase::kOptimizer;
    }
    return weights;
  };
  CHECK(count(8) > 0);
  CHECK(count(8) == count(16));
}

}  // namespace
TEST_CASE("what an update costs counts the weights that it rounds to 8 bits") {
  const auto shares = [](const TrainingJob& job) {
    Training training(job);
    std::vector<std::int32_t> found;
    for (const Submission& submission : all_submissions(training))
      for (const Op& op : submission.fragment->ops)
        if (op.kind == OpKind::kAdam) found.push_back(query_of(*submission.fragment, op, 1).shape.v_dim);
    REQUIRE_FALSE(found.empty());
    return found;
  };
  TrainingJob job = fp8_job(false, DType::kBf16);
  const std::vector<std::int32_t> rounded = shares(job);
  CHECK(*std::max_element(rounded.begin(), rounded.end()) == kShareOfUpdate);  // of experts
  CHECK(*std::min_element(rounded.begin(), rounded.end()) < kShareOfUpdate);   // norms and tables are not
  job.plan.half_weights = true;  // what is quantised from them has ops of its own
  for (const std::int32_t share : shares(job)) CHECK(share == 0);
}

}  // namespace moebius
