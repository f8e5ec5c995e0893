// FP8 training pays every quantisation once: as an op of its own, fused into the norm or activation before,
// or before the tokens travel. GEMMs themselves never quantise (CostQuery::fused_quantise stays false), so
// that the times that they are told contain none.
#include <catch2/catch.hpp>

#include <set>

#include "small_job.h"

namespace moebius {
namespace {

bool multiplies(OpKind kind) {
  return kind == OpKind::kGemm || kind == OpKind::kGemmDgrad || kind == OpKind::kGemmWgrad ||
         kind == OpKind::kGroupedGemm || kind == OpKind::kGroupedGemmDgrad ||
         kind == OpKind::kGroupedGemmWgrad;
}

bool is_weight_gradient(OpKind kind) {
  return kind == OpKind::kGemmWgrad || kind == OpKind::kGroupedGemmWgrad;
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

TEST_CASE("a plan with one scale per tensor has it in all FP8 tensors and in no other") {
  for (const bool fused : {false, true}) {
    TrainingJob job = fp8_job(fused, DType::kBf16);
    job.plan.scaling = Scaling::kTensor;
    Training training(job);
    int low = 0, others = 0;
    for (const Submission& submission : all_submissions(training)) {
      for (const Tensor& tensor : submission.fragment->tensors) {
        CHECK((tensor.scaling == Scaling::kTensor) == (tensor.dtype == DType::kFp8));
        ++(tensor.dtype == DType::kFp8 ? low : others);
      }
    }
    CHECK(low > 0);
    CHECK(others > 0);
    // The same ops in the same order: only what they write differs.
    const Counts whole = check_job(job), blocks = check_job(fp8_job(fused, DType::kBf16));
    CHECK(whole.products == blocks.products);
    CHECK(whole.passes == blocks.passes);
  }
}

}  // namespace
}  // namespace moebius
