// Tensor-parallel communication in pieces, and dense MLPs cut otherwise than attention: where rows stand and
// when they travel changes, the loss does not.
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cross/exact_losses.h"

namespace moebius {
namespace {

// tp 2 by rows, on four ranks with experts.
TrainingJob two_by_two(AttentionKind attention) {
  TrainingJob job = all_experts_job(attention);
  job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  job.plan.dp = 2;
  job.plan.ep = 4;
  return job;
}

// Without experts; queries straight from the stream, which the ranks' latent of keys is made of, too.
TrainingJob queries_without_latent() {
  TrainingJob job = small_job(small_model(AttentionKind::kMla));
  job.model.mla.q_rank = 0;
  job.model.experts = {};
  job.model.gated = false;  // how columns of gate and up fall on ranks is a property of the degree
  job.workload.steps = 3;
  job.workload.micro_batch = 2;
  return job;
}

}  // namespace

// The gradient of the stream is a sum over the ranks as far as queries go, and whole on each as far as the
// latent goes.
TEST_CASE("queries without a latent have the same loss on tensor-parallel ranks") {
  const TrainingJob job = queries_without_latent();
  for (const bool by_rows : {false, true}) {
    const auto cut = [by_rows](TrainingJob& changed) {
      changed.plan.tp = 2;
      changed.plan.sequence_parallel = by_rows;
    };
    require_same_losses(job, cut);
    require_same_losses(job, [&](TrainingJob& changed) { cut(changed), changed.plan.cp = 2; });
    require_same_losses(job, [&](TrainingJob& changed) {
      cut(changed);
      changed.plan.recompute = RecomputePolicy::kFull;
    });
    require_same_losses(job, [&](TrainingJob& changed) {
      cut(changed);
      changed.plan.pp = 2;
      changed.plan.schedule = PipelineKind::kZbH1;
      changed.plan.recompute = RecomputePolicy::kSelective;
      changed.plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kQkv};
    });
  }
}

TEST_CASE("norms of all heads together have the same loss on ranks that have some of them each") {
  TrainingJob job = queries_without_latent();
  job.model = small_model(AttentionKind::kMha);
  job.model.qk_norm = QkNorm::kPerLayer;
  job.model.experts = {};
  job.model.gated = false;
  const std::vector<double> whole = losses_by_matrix(job);
  const auto require_same = [&](const TrainingJob& changed) {
    const std::vector<double> found = losses_by_matrix(changed);
    for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(whole[step]).epsilon(1e-7));
  };
  TrainingJob changed = job;
  for (const int tp : {2, 4}) {
    changed.plan.tp = tp;
    require_same(changed);
  }
  changed.plan.tp = changed.plan.pp = changed.plan.cp = 2;
  changed.plan.sequence_parallel = true;
  changed.plan.schedule = PipelineKind::kZbH1;
  changed.plan.recompute = RecomputePolicy::kSelective;
  changed.plan.recompute_ops = {RecomputeOp::kNorm, RecomputeOp::kQkv};
  require_same(changed);
}

// The sums of a row are the same sums in the same order: the same bits.
TEST_CASE("tensor-parallel communication in pieces has the loss of that in one") {
  for (const AttentionKind attention : {AttentionKind::kMla, AttentionKind::kGqa}) {
    TrainingJob job = two_by_two(attention);
    const std::vector<double> whole = exact_losses(job);
    for (const int chunks :
         {2, 3, 16}) {  // 3 does not divide the 8 rows of a rank; 16 are more than there are
      job.plan.tp_chunks = chunks;
      CHECK(exact_losses(job) == whole);
    }
    job.plan.recompute = RecomputePolicy::kFull;
    CHECK(exact_losses(job) == whole);
  }
}

TEST_CASE("pieces that are cast to 8 bits have the loss of whole tensors") {
  TrainingJob job = two_by_two(AttentionKind::kMla);
  job.plan.gemm = DType::kFp8;
  HostOptions rounded;  // to storage formats
  const auto train = [&] {
    SmallRun<float> run(job, rounded);
    return run.run().loss(2);
  };
  const double whole = train();
  job.plan.tp_chunks = 4;
  CHECK(train() == whole);
}

// Of rows that are gathered piece by piece one scale is known before the first piece travels.
TEST_CASE("pieces that are cast by one scale for the tensor have the loss of whole tensors") {
  TrainingJob job = two_by_two(AttentionKind::kMla);
  job.plan.gemm = DType::kFp8;
  job.plan.scaling = Scaling::kTensor;
  const std::vector<double> whole = three_losses<float>(job, false);
  job.plan.tp_chunks = 4;
  CHECK(three_losses<float>(job, false) == whole);
}

// Scales of MXFP8 span 32 tokens of the copies that weight gradients read.
TEST_CASE("pieces of whole scales have the loss of whole tensors in MXFP8") {
  TrainingJob job = two_by_two(AttentionKind::kMla);
  job.workload.sequence_length = 256;  // 128 tokens of a rank
  job.plan.gemm = DType::kFp8;
  job.plan.scaling = Scaling::kMicro;
  const std::vector<double> whole = three_losses<float>(job, false);
  for (const int chunks : {2, 4}) {
    job.plan.tp_chunks = chunks;
    CHECK(three_losses<float>(job, false) == whole);
  }
  job.plan.tp_chunks = 8;  // of 16 tokens: beside frozen weights there are no such copies
  job.workload.adapters = {.rank = 3, .targets = {AdapterTarget::kQkv, AdapterTarget::kMlpUp}};
  const std::vector<double> pieces = three_losses<float>(job, false);
  job.plan.tp_chunks = 0;
  CHECK(three_losses<float>(job, false) == pieces);
}

TEST_CASE("pieces have the loss of whole tensors where state is sharded or stands in host memory") {
  for (const int zero : {2, 3}) {
    TrainingJob job = two_by_two(AttentionKind::kGqa);
    job.plan.zero = zero;
    const std::vector<double> whole = exact_losses(job);
    job.plan.tp_chunks = 3;
    CHECK(exact_losses(job) == whole);
    job.plan.recompute = RecomputePolicy::kFull;
    job.plan.offload = {true, true, true, true};
    CHECK(exact_losses(job) == whole);
  }
}

// Shared experts follow the degree of attention, dense MLPs their own.
TEST_CASE("the degree of attention does not change the loss of dense MLPs of another degree") {
  for (const int dense : {1, 2, 4}) {
    TrainingJob job = two_by_two(AttentionKind::kMla);
    job.plan.dense_tp = dense;
    const std::vector<double> expected = losses_by_matrix(job);
    job.plan.tp = 1;
    job.plan.sequence_parallel = false;
    job.plan.dp = 4;
    const std::vector<double> found = losses_by_matrix(job);
    for (int step = 0; step < 3; ++step) CHECK(found[step] == Approx(expected[step]).epsilon(1e-7));
  }
}

TEST_CASE("dense MLPs over the ranks of two sequences or of two halves of one have the same loss") {
  for (const AttentionKind attention : {AttentionKind::kMla, AttentionKind::kGqa}) {
    TrainingJob job = two_by_two(attention);
    job.plan.dense_tp = 4;
    const std::vector<double> expected = exact_losses(job);
    job.plan.dp = 1;
    job.plan.cp = 2;
    job.plan.tp_chunks = 2;
    const std::vector<double> halves = exact_losses(job);
    job.plan.cp = 1;
    job.plan.dp = 2;
    job.plan.zero = 1;
    job.plan.overlap_gradients = true;
    const std::vector<double> sharded = exact_losses(job);
    for (int step = 0; step < 3; ++step) {
      CHECK(halves[step] == Approx(expected[step]).epsilon(1e-7));
      CHECK(sharded[step] == Approx(expected[step]).epsilon(1e-7));
    }
  }
}

}  // namespace moebius
