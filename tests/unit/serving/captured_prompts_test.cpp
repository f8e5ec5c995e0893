// Which iterations are replayed as graphs.
#include <optional>

#include "tests/unit/training/small_job.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/lower.h"
#include "workloads/serving/serving.h"
#include "workloads/serving/shared_experts.h"

#include "tests/catch.h"

namespace moebius {
namespace {

// An iteration of a prompt of so many tokens beside so many sequences that decode.
LaunchMode launched(int prompt, int decoding, LaunchMode mode = LaunchMode::kGraph,
                    std::optional<LaunchMode> told = {}) {
  ServingJob job;
  job.plan.max_batch = 8;
  job.plan.token_budget = 64;
  job.plan.block_tokens = 4;
  job.plan.launch = mode;
  job.plan.captured = 4;
  job.plan.captured_prompts = mode == LaunchMode::kGraph ? 32 : 0;
  job.model = served_model(small_model(), job.plan);
  job.workload = {.requests = 1, .input = {8, 8}, .output = {3, 3}, .popularity = {}};
  Batch batch;
  batch.page_tokens = 64;
  if (prompt > 0) batch.sequences.push_back({0, prompt, 0, prompt, {0}});
  for (int i = 1; i <= decoding; ++i) batch.sequences.push_back({i, 9, 8, 1, {i}});
  const BatchPtr shared = std::make_shared<const Batch>(batch);
  IterationRoutes routes(job);
  routes.begin({shared});
  const ServingShape shape(job);
  Iteration iteration{shared, {}, [&](int layer) { return routes.get(0, layer); }};
  iteration.launch = told;
  return lower_iteration(shape, iteration)->launch;
}

TEST_CASE("iterations with prompts are replayed up to the captured tokens, decoding ones included") {
  CHECK(launched(32, 0) == LaunchMode::kGraph);
  CHECK(launched(33, 0) == LaunchMode::kKernel);
  CHECK(launched(30, 2) == LaunchMode::kGraph);
  CHECK(launched(30, 3) == LaunchMode::kKernel);
}

TEST_CASE("decoding is replayed up to the captured sequences, however many tokens prompts may have") {
  CHECK(launched(0, 4) == LaunchMode::kGraph);
  CHECK(launched(0, 5) == LaunchMode::kKernel);
  CHECK(launched(16, 0, LaunchMode::kHidden) == LaunchMode::kHidden);
}

TEST_CASE("an iteration that is told how it is launched asks no size") {
  CHECK(launched(0, 4, LaunchMode::kGraph, LaunchMode::kKernel) == LaunchMode::kKernel);
  CHECK(launched(0, 5, LaunchMode::kGraph, LaunchMode::kGraph) == LaunchMode::kGraph);
}

// Rows that fill a graph are all alike: beside three tokens any number of them choose what one chooses.
TEST_CASE("rows that fill a graph load the experts of one token, whatever experts are popular") {
  ServingJob job;
  job.model = small_model();
  job.model.experts.routed = 64;
  const auto loaded = [&](int padding, PopularityKind kind) {
    job.workload.popularity.kind = kind;
    Batch batch;
    batch.page_tokens = 64;
    for (int i = 0; i < 3 + padding; ++i) batch.sequences.push_back({i < 3 ? i : -1, 9, 8 + i, 1, {i}});
    IterationRoutes routes(job);
    routes.begin({std::make_shared<const Batch>(batch)});
    const RoutePtr route = routes.get(0, job.model.first_dense);
    int experts = 0;
    for (int e = 0; e < 64; ++e) experts += route->rows(0, e) > 0;
    return experts;
  };
  for (const PopularityKind kind : {PopularityKind::kZipf, PopularityKind::kBalanced}) {
    CHECK(loaded(1, kind) > loaded(0, kind));
    CHECK(loaded(20, kind) == loaded(1, kind));
  }
}

}  // namespace
}  // namespace moebius
