#include <algorithm>

#include <catch2/catch.hpp>

#include "small_job.h"
#include "workloads/schedule/row_window.h"

using namespace moebius;

namespace {

// Two tensor-parallel ranks that hold 16 of 32 tokens each between blocks, four layers without experts.
TrainingJob dense_job(int chunks) {
  TrainingJob job = small_job();
  job.model.experts = {};
  job.plan.ep = 1;
  job.plan.dp = 2;
  job.plan.tp = 2;
  job.plan.sequence_parallel = true;
  job.plan.tp_chunks = chunks;
  return job;
}

struct Work {
  int gathers = 0, sums = 0;  // over the tensor group
  double gathered = 0, summed = 0, flops = 0;
};

FragmentPtr fragment_of(const TrainingJob& job, Phase phase) {
  Training training(job);
  for (const Submission& submission : all_submissions(training)) {
    if (submission.fragment->phase == phase) return submission.fragment;
  }
  FAIL("no such fragment");
  return nullptr;
}

Work work_of(const TrainingJob& job, Phase phase) {
  Work work;
  const FragmentPtr fragment = fragment_of(job, phase);
  for (const Op& op : fragment->ops) {
    if (op.group == GroupRole::kTensor && op.kind == OpKind::kAllGather)
      ++work.gathers, work.gathered += op.payload.value;
    if (op.group == GroupRole::kTensor && op.kind == OpKind::kReduceScatter)
      ++work.sums, work.summed += op.payload.value;
  }
  for (const OpKind kind : {OpKind::kGemm, OpKind::kGemmDgrad, OpKind::kGemmWgrad})
    work.flops += matrix_flops(*fragment, kind);
  return work;
}

}  // namespace

// A layer of latent attention gathers queries, keys and values, positions, and the MLP's input, and sums two
// results; the head gathers once, its statistics too, and the embedding sums once. Positions and statistics
// go into no product and stay whole. Backward, each layer gathers two gradients before their products and
// three inputs again behind others, which stay whole as the sums do; so do the head's input and the
// embedding's gradient.
TEST_CASE("pieces multiply the collectives beside products and keep bytes and FLOPs") {
  constexpr int kLayers = 4, kChunks = 4;
  const Work forward = work_of(dense_job(0), Phase::kForward);
  const Work cut_forward = work_of(dense_job(kChunks), Phase::kForward);
  CHECK(forward.gathers == kLayers * 4 + 2);
  CHECK(cut_forward.gathers == kLayers * (3 * kChunks + 1) + kChunks + 1);
  CHECK(forward.sums == kLayers * 2 + 1);
  CHECK(cut_forward.sums == kLayers * 2 * kChunks + 1);
  const Work backward = work_of(dense_job(0), Phase::kBackward);
  const Work cut_backward = work_of(dense_job(kChunks), Phase::kBackward);
  CHECK(backward.gathers == kLayers * 5 + 2);
  CHECK(cut_backward.gathers == kLayers * (2 * kChunks + 3) + 2);
  CHECK(cut_backward.sums == backward.sums);
  CHECK(cut_forward.gathered == Approx(forward.gathered).epsilon(1e-12));
  CHECK(cut_forward.summed == Approx(forward.summed).epsilon(1e-12));
  CHECK(cut_forward.flops == Approx(forward.flops).epsilon(1e-12));
  CHECK(cut_backward.gathered == Approx(backward.gathered).epsilon(1e-12));
  CHECK(cut_backward.flops == Approx(backward.flops).epsilon(1e-12));
}

// As counted above, but for statistics: what products read is put in order behind each of three gathers of a
// layer, the positions' and the head's, what two sums of a layer and the embedding's add up is cut before
// them. Gathered rows are kept, so that in reverse the gathers are those of the sums' gradients.
TEST_CASE("collectives of the first dimension alone have a pass before each sum and behind each gather") {
  constexpr int kLayers = 4;
  TrainingJob job = dense_job(0);
  const auto passes = [&](Phase phase) {
    const FragmentPtr fragment = fragment_of(job, phase);
    return std::count_if(fragment->ops.begin(), fragment->ops.end(), [](const Op& op) {
      return op.kind == OpKind::kSplit || op.kind == OpKind::kConcat;
    });
  };
  const auto forward = passes(Phase::kForward), backward = passes(Phase::kBackward);
  const Work before = work_of(job, Phase::kForward), reverse = work_of(job, Phase::kBackward);
  job.plan.gather_passes = true;
  const Work with = work_of(job, Phase::kForward), with_reverse = work_of(job, Phase::kBackward);
  CHECK(passes(Phase::kForward) - forward == kLayers * (4 + 2) + 1 + 1);
  CHECK(passes(Phase::kBackward) - backward == kLayers * (4 + 2) + 1 + 1);
  CHECK(with.gathers == before.gathers);
  CHECK(with.sums == before.sums);
  CHECK(with_reverse.sums == reverse.sums);
  CHECK(with_reverse.gathers == kLayers * 2 + 1);
  CHECK(with_reverse.flops == Approx(reverse.flops).epsilon(1e-12));
}

// 16 rows of a rank in three pieces: 5, 5 and 6.
TEST_CASE("a product waits for its own piece alone and takes these rows of every member") {
  const FragmentPtr fragment = fragment_of(dense_job(3), Phase::kForward);
  std::vector<const Op*> products;
  for (const Op& op : fragment->ops) {
    if (op.kind == OpKind::kGemm && op.role == Role::kGateUp && op.layer == 0) products.push_back(&op);
  }
  REQUIRE(products.size() == 3);
  const std::int64_t firsts[] = {0, 5, 10}, rows[] = {5, 5, 6};
  for (int c = 0; c < 3; ++c) {
    const auto window = row_window(*fragment, *products[c], 0);
    REQUIRE(window);
    CHECK(window->blocks == 2);
    CHECK(window->block_rows == 16);
    CHECK(window->first == firsts[c]);
    CHECK(window->rows == rows[c]);
    CHECK(products[c]->shape.m == 2 * rows[c]);
    REQUIRE(products[c]->num_dependencies == 1);
    const Op& gather = fragment->ops[fragment->dependencies[products[c]->first_dependency]];
    CHECK(gather.kind == OpKind::kAllGather);
    CHECK(row_window(*fragment, gather, 0)->blocks == 1);
    CHECK(row_window(*fragment, gather, 0)->first == firsts[c]);
    CHECK(row_window(*fragment, gather, 1)->blocks == 2);
    CHECK(row_window(*fragment, gather, 1)->row(1) == 16 + firsts[c]);
  }
}

TEST_CASE("a plan without pieces has no windows") {
  const FragmentPtr fragment = fragment_of(dense_job(0), Phase::kForward);
  for (const Op& op : fragment->ops) CHECK(!row_window(*fragment, op, 0));
}

// Attention over one rank each, dense MLPs over four: each brings its 32 tokens, the group gathers and sums
// 4 * 32 rows of 64 columns in BF16.
TEST_CASE("dense MLPs of a larger degree gather the rows of all ranks of their group") {
  TrainingJob job = dense_job(0);
  job.plan.tp = 1;
  job.plan.sequence_parallel = false;
  job.plan.dp = 8;
  job.plan.dense_tp = 4;
  const FragmentPtr fragment = fragment_of(job, Phase::kForward);
  int gathers = 0;
  for (const Op& op : fragment->ops) {
    if (op.group == GroupRole::kDenseTensor) CHECK(op.payload.value == 4 * 32 * 64 * 2);
    gathers += op.group == GroupRole::kDenseTensor && op.kind == OpKind::kAllGather ? 1 : 0;
    if (op.kind == OpKind::kGemm && op.role == Role::kGateUp)
      CHECK(op.shape == Shape{4 * 32, 2 * 128 / 4, 64});
  }
  CHECK(gathers == 4);  // one a layer
}

// Eight ranks: groups of four that share a dense MLP, replicas of a part four ranks apart.
TEST_CASE("replicas of a part of a dense MLP stand one group apart") {
  TrainingJob job = dense_job(0);
  job.plan.dp = 4;
  job.plan.dense_tp = 4;
  job.plan.fold = false;
  const Layout layout = make_layout(job.plan);
  const RankClass& rank = layout.classes[6];
  CHECK(rank.group(GroupRole::kTensor).ranks == std::vector<std::int32_t>{6, 7});
  CHECK(rank.group(GroupRole::kDenseTensor).ranks == std::vector<std::int32_t>{4, 5, 6, 7});
  CHECK(rank.group(GroupRole::kDenseTensor).my_index == 2);
  CHECK(rank.group(GroupRole::kDenseData).ranks == std::vector<std::int32_t>{2, 6});
}
