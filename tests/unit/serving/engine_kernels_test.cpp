// Which ops of a served layer are kernels of their own, by what the plan says of an engine's kernels.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/training/small_job.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/lower.h"
#include "workloads/serving/serving.h"

#include "tests/catch.h"

namespace moebius {
namespace {

// Queries and keys of which heads are normed.
ServingJob job_of() {
  ServingJob job;
  job.model = dense_job().model;
  job.model.qk_norm = QkNorm::kPerHead;
  job.plan.max_batch = 8;
  job.plan.token_budget = 64;
  job.plan.block_tokens = 4;
  job.plan.fused = true;
  job.workload = {.requests = 1, .input = {8, 8}, .output = {3, 3}, .popularity = {}};
  return job;
}

// Of an iteration in which three sequences decode.
FragmentPtr decoding(const ServingJob& job) {
  Batch batch;
  batch.page_tokens = 64;
  for (int i = 0; i < 3; ++i) batch.sequences.push_back({i, 9, 8, 1, {i}});
  const BatchPtr shared = std::make_shared<const Batch>(batch);
  IterationRoutes routes(job);
  routes.begin({shared});
  const ServingShape shape(job);
  return lower_iteration(shape, {shared, {}, [&](int layer) { return routes.get(0, layer); }});
}

// Of the first layer, behind the projection of queries, keys and values and before their attention.
std::vector<OpKind> head_kernels(const ServingJob& job) {
  const FragmentPtr fragment = decoding(job);
  std::vector<OpKind> kinds;
  bool within = false;
  for (const Op& op : fragment->ops) {
    if (op.kind == OpKind::kPagedAttention) break;
    if (within && !op.fused) kinds.push_back(op.kind);
    within = within || op.role == Role::kQkv;
  }
  return kinds;
}

using Kinds = std::vector<OpKind>;

TEST_CASE("one kernel norms queries and keys, rotates them and fills the cache, or up to three do") {
  ServingJob job = job_of();
  CHECK(head_kernels(job) == Kinds{OpKind::kSplit});
  job.plan.fused_append = false;
  CHECK(head_kernels(job) == Kinds{OpKind::kSplit, OpKind::kCacheAppend});
  job.plan.fused_head_norms = false;
  CHECK(head_kernels(job) == Kinds{OpKind::kSplit, OpKind::kRotary, OpKind::kCacheAppend});
  job.plan.fused_append = true;
  CHECK(head_kernels(job) == Kinds{OpKind::kSplit, OpKind::kRotary});
  job.model.qk_norm = QkNorm::kNone;  // what rotates splits then
  CHECK(head_kernels(job) == Kinds{OpKind::kSplit});
}

// Both rotations of latent attention are one kernel, apart from that of the latent's norm.
TEST_CASE("latents are split, normed and rotated in a kernel, the cache is filled in it or behind it") {
  ServingJob job = job_of();
  job.model = small_model();
  const auto kernels = [&] {
    const FragmentPtr fragment = decoding(job);
    Kinds kinds;
    for (const Op& op : fragment->ops) {
      if (op.kind == OpKind::kPagedAttention) break;
      const bool of_heads =
          op.kind == OpKind::kSplit || op.kind == OpKind::kRotary || op.kind == OpKind::kCacheAppend;
      if (of_heads && !op.fused) kinds.push_back(op.kind);
    }
    return kinds;
  };
  CHECK(kernels() == Kinds{OpKind::kRotary, OpKind::kSplit});
  job.plan.fused_head_norms = job.plan.fused_append = false;
  CHECK(kernels() == Kinds{OpKind::kRotary, OpKind::kSplit, OpKind::kCacheAppend});
}

// A prompt of 8 tokens behind 4 in the cache, on two ranks or one.
TEST_CASE("prompts over latents are one attention by heads or by absorbed maps, as the engine has it") {
  ServingJob job = job_of();
  job.model = small_model();
  job.model.first_dense = job.model.layers;
  const auto kinds = [&](std::int64_t below, std::optional<bool> told) {
    job.plan.absorbed_below = below;
    Batch batch;
    batch.page_tokens = 64;
    batch.sequences.push_back({0, 12, 4, 8, {0}});
    const BatchPtr shared = std::make_shared<const Batch>(batch);
    IterationRoutes routes(job);
    routes.begin({shared});
    const ServingShape shape(job);
    Iteration iteration{shared, {}, [&](int layer) { return routes.get(0, layer); }};
    iteration.absorbed = told;
    const FragmentPtr fragment = lower_iteration(shape, iteration);
    int by_heads = 0, absorbed = 0;
    for (const Op& op : fragment->ops) {
      by_heads += op.kind == OpKind::kMlaKeys && op.shape.kv_heads == kValuesStay && op.shape.m == 12;
      absorbed += op.kind == OpKind::kAbsorbQueries && op.shape.m == 8;
      if (op.kind == OpKind::kRotary && op.shape.heads > 1) CHECK(op.shape.k == kInPlace);
    }
    return std::pair(by_heads, absorbed);
  };
  for (const int tp : {1, 2}) {
    INFO(tp);
    job.plan.tp = tp;
    const int layers = job.model.layers;
    for (const std::int64_t below : {1, 4}) CHECK(kinds(below, {}) == std::pair(layers, 0));
    CHECK(kinds(5, {}) == std::pair(0, layers));
    CHECK(kinds(5, false) == std::pair(layers, 0));
    CHECK(kinds(1, true) == std::pair(0, layers));
  }
}

int quantisations(const FragmentPtr& fragment, bool fused) {
  return static_cast<int>(std::count_if(fragment->ops.begin(), fragment->ops.end(), [&](const Op& op) {
    return op.kind == OpKind::kQuantise && op.fused == fused;
  }));
}

// Two ranks, two dense layers: each quantises what two norms, attention and an activation leave. The norm
// behind the first layer's attention and those of the second layer are parts of reductions, and so is the
// one before the head, which stays in BF16.
TEST_CASE("a reduction that norms also quantises in 4 bits where its engine's does") {
  ServingJob job = job_of();
  job.model.layers = 2;
  job.plan.tp = 2;
  job.plan.gemm = DType::kFp4;
  job.plan.fused_quantise = false;
  job.plan.fused_reduction = true;
  CHECK(quantisations(decoding(job), false) == 8);
  job.plan.quantised_reduction = true;
  CHECK(quantisations(decoding(job), true) == 3);
  job.plan.gemm = DType::kFp8;  // blocks of which no reduction finds the scales
  CHECK(quantisations(decoding(job), true) == 0);
}

TEST_CASE("both maps of latent attention's input are one product") {
  ServingJob job = job_of();
  job.model = small_model();
  const auto joined = [&] {
    const FragmentPtr fragment = decoding(job);
    int count = 0;
    for (const Op& op : fragment->ops) count += op.role == Role::kKvA && op.kind == OpKind::kGemm && op.fused;
    return count;
  };
  CHECK(joined() == job.model.layers);
  job.plan.fused = false;
  CHECK(joined() == 0);
}

}  // namespace
}  // namespace moebius
