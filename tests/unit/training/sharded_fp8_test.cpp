// What travels and what is kept where FP8 weights are sharded.
#include <set>

#include <catch2/catch.hpp>

#include "small_job.h"

namespace moebius {
namespace {

// Four matrices a layer are multiplied in FP8.
TrainingJob job_of_shards(Scaling scaling, bool half) {
  TrainingJob job = dense_job();
  job.plan.gemm = DType::kFp8;
  job.plan.scaling = scaling;
  job.plan.half_weights = half;
  job.plan.zero = 3;
  return job;
}

// Over the fragments of a phase, each once.
template <class Count>
double sum_over_ops(const TrainingJob& job, Phase phase, const Count& count) {
  Training training(job);
  std::set<std::uint64_t> seen;
  double sum = 0;
  for (const Submission& submission : all_submissions(training)) {
    const Fragment& fragment = *submission.fragment;
    if (fragment.phase != phase || !seen.insert(fragment.hash).second) continue;
    for (const Op& op : fragment.ops) sum += count(fragment, op);
  }
  return sum;
}

double sent(const TrainingJob& job, Phase phase, OpKind kind) {
  return sum_over_ops(job, phase,
                      [&](const Fragment&, const Op& op) { return op.kind == kind ? op.payload.value : 0; });
}

// Elements of weights that passes of a kind go over.
double passed_over(const TrainingJob& job, Phase phase, OpKind kind) {
  return sum_over_ops(job, phase, [&](const Fragment& fragment, const Op& op) {
    const bool weight = op.kind == kind && op.num_inputs > 0 &&
                        fragment.tensors[fragment.input(op, 0)].memory == MemoryKind::kWeights;
    return weight ? static_cast<double>(op.shape.m * op.shape.n) : 0.0;
  });
}

double weights_kept(const TrainingJob& job) {
  return Training(job).memory({1e9}).classes[0].resident[static_cast<int>(MemoryKind::kWeights)].value;
}

struct Sizes {
  double all = 0, embedding = 0, matrices = 0, number_of_matrices = 0;
};

// Per layer: queries, keys, values and output are 4 h^2 with as many heads of keys; gate, up and down 3 h w.
Sizes sizes_of(const Model& model) {
  const double h = static_cast<double>(model.hidden), w = static_cast<double>(model.dense_width);
  return {count_parameters(model).total(), static_cast<double>(model.vocabulary) * h,
          model.layers * (4 * h * h + 3 * h * w), 4.0 * model.layers};
}

}  // namespace

TEST_CASE("weights in BF16 are sharded and gathered as without FP8, and cast in each pass by every rank") {
  for (const Scaling scaling : {Scaling::kBlock, Scaling::kTensor, Scaling::kMicro, Scaling::kHistory}) {
    const TrainingJob job = job_of_shards(scaling, true);
    const Sizes p = sizes_of(job.model);
    CHECK(weights_kept(job) == 2 * p.all / 4);
    CHECK(sent(job, Phase::kForward, OpKind::kAllGather) == 2 * p.all);
    CHECK(sent(job, Phase::kBackward, OpKind::kAllGather) == 2 * (p.all - p.embedding));
    CHECK(sent(job, Phase::kOptimizer, OpKind::kAllGather) == 0);
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      CHECK(passed_over(job, phase, OpKind::kQuantise) == p.matrices);
      CHECK(passed_over(job, phase, OpKind::kLargest) == (scaling == Scaling::kTensor ? p.matrices : 0));
    }
    CHECK(passed_over(job, Phase::kOptimizer, OpKind::kQuantise) == 0);
  }
}

// A byte an element and a scale of four for each matrix, which each rank knows; everything else in BF16.
// Shards are kept in both formats: the update writes BF16, of which one pass finds the magnitudes and one
// casts.
TEST_CASE("shards with one scale for the tensor are cast once a step and gathered in 8 bits") {
  const TrainingJob job = job_of_shards(Scaling::kTensor, false);
  const Sizes p = sizes_of(job.model);
  const double others = p.all - p.matrices, gathered = p.matrices + 4 * p.number_of_matrices;
  CHECK(sent(job, Phase::kForward, OpKind::kAllGather) == 2 * others + gathered);
  CHECK(sent(job, Phase::kBackward, OpKind::kAllGather) == 2 * (others - p.embedding) + gathered);
  CHECK(weights_kept(job) == (2 * p.all + p.matrices) / 4 + 4 * p.number_of_matrices);
  CHECK(sent(job, Phase::kOptimizer, OpKind::kAllReduce) == 4 * p.number_of_matrices);
  CHECK(passed_over(job, Phase::kOptimizer, OpKind::kLargest) == p.matrices / 4);
  CHECK(passed_over(job, Phase::kOptimizer, OpKind::kQuantise) == p.matrices / 4);
  for (const Phase phase : {Phase::kForward, Phase::kBackward})
    CHECK(passed_over(job, phase, OpKind::kQuantise) == 0);
}

// Of four ranks each keeps a quarter of the elements, and the scale of each matrix.
TEST_CASE("with scales of the steps before nothing has to be found: the update writes 8-bit shards") {
  const TrainingJob job = job_of_shards(Scaling::kHistory, false);
  const Sizes p = sizes_of(job.model);
  CHECK(weights_kept(job) == (2 * (p.all - p.matrices) + p.matrices) / 4 + 4 * p.number_of_matrices);
  CHECK(sent(job, Phase::kOptimizer, OpKind::kAllReduce) == 0);
  CHECK(passed_over(job, Phase::kOptimizer, OpKind::kQuantise) == 0);
}

// Eight microbatches, two of each replica: one forward fragment of two brings the weights.
TEST_CASE("weights gathered beside the next forward pass are those of the update, in its first pass alone") {
  for (const int zero : {1, 2}) {
    TrainingJob job = job_of_shards(Scaling::kBlock, true);
    job.plan.zero = zero;
    const double after = sent(job, Phase::kOptimizer, OpKind::kAllGather);
    CHECK(after == 2 * sizes_of(job.model).all);
    CHECK(sent(job, Phase::kForward, OpKind::kAllGather) == 0);
    const double memory = weights_kept(job);
    job.plan.overlap_weights = true;
    CHECK(sent(job, Phase::kOptimizer, OpKind::kAllGather) == 0);
    CHECK(sent(job, Phase::kForward, OpKind::kAllGather) == after);
    CHECK(weights_kept(job) == memory);
    CHECK(passed_over(job, Phase::kForward, OpKind::kQuantise) == sizes_of(job.model).matrices);
  }
}

// Of four layers the second and the fourth keep their input alone. Keys of ops that a pass computes again,
// and what a microbatch keeps, lie halfway between none and all.
TEST_CASE("every second layer that is computed again frees and costs half of what all do") {
  TrainingJob job = small_job();
  job.model.first_dense = 4;
  job.model.experts = {};
  job.plan.ep = 1;
  const auto figures = [&](RecomputePolicy policy, int every) {
    job.plan.recompute = policy;
    job.plan.recompute_every = every;
    double kept = sum_over_ops(job, Phase::kForward, [](const Fragment& fragment, const Op& op) {
      double bytes = 0;
      for (int i = 0; i < op.num_outputs; ++i) {
        const Tensor& tensor = fragment.tensors[fragment.output(op, i)];
        if (tensor.scope == Scope::kMicrobatch) bytes += tensor.bytes().value;
      }
      return bytes;
    });
    double products = sum_over_ops(job, Phase::kBackward, [](const Fragment&, const Op& op) {
      return op.kind == OpKind::kGemm ? op_flops(op.kind, op.shape).value : 0;
    });
    return std::pair{kept, products};
  };
  const auto none = figures(RecomputePolicy::kNone, 1), all = figures(RecomputePolicy::kFull, 1),
             half = figures(RecomputePolicy::kFull, 2);
  CHECK(none.second == 0);
  CHECK(half.second == all.second / 2);
  CHECK(half.first == Approx((none.first + all.first) / 2).epsilon(0.01));
}

// The stream behind attention is one tensor of hidden columns in BF16 a layer, and what is computed again for
// it one product of hidden x hidden.
TEST_CASE("an output projection that is computed again frees the residual stream behind it") {
  const auto alive = [](std::vector<RecomputeOp> ops) {
    TrainingJob job = job_of_shards(Scaling::kBlock, true);
    job.plan.gemm = DType::kBf16;
    job.plan.half_weights = false;
    if (!ops.empty()) job.plan.recompute = RecomputePolicy::kSelective;
    job.plan.recompute_ops = std::move(ops);
    const double bytes = sum_over_ops(job, Phase::kForward, [](const Fragment& fragment, const Op& op) {
      if (op.kind != OpKind::kAdd) return 0.0;
      const Tensor& stream = fragment.tensors[fragment.output(op, 0)];
      return stream.scope == Scope::kMicrobatch ? stream.bytes().value : 0.0;
    });
    const double flops = sum_over_ops(job, Phase::kBackward, [](const Fragment&, const Op& op) {
      return op.kind == OpKind::kGemm ? op_flops(op.kind, op.shape).value : 0;
    });
    return std::pair{bytes, flops};
  };
  const double layers = 4, tokens = 32, hidden = 64, width = 128;
  const double streams = 2 * layers * tokens * hidden * 2;
  CHECK(alive({}) == std::pair{streams, 0.0});
  CHECK(alive({RecomputeOp::kAttentionOut}) == std::pair{streams / 2, layers * 2 * tokens * hidden * hidden});
  CHECK(alive({RecomputeOp::kMlpDown}) == std::pair{streams / 2, layers * 2 * tokens * hidden * width});
}

}  // namespace moebius
