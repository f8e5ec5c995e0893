// What travels where ranks gather each other's tokens instead of sending them to experts.
#include "tests/unit/training/small_job.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/lower.h"
#include "workloads/serving/serving.h"
#include "workloads/serving/shared_experts.h"

#include "tests/catch.h"

namespace moebius {
namespace {

// The first dispatch of an iteration of four replicas that share experts.
Op dispatched(DType format, Algorithm exchange) {
  ServingJob job;
  job.plan.dp = job.plan.ep = job.ranks_per_node = 4;
  job.plan.max_batch = 4;
  job.plan.token_budget = 16;
  job.plan.block_tokens = 4;
  job.plan.gemm = format;
  job.plan.prefill_exchange = job.plan.decode_exchange = exchange;
  job.model = served_model(small_model(), job.plan);
  job.workload = {.requests = 4, .input = {8, 8}, .output = {3, 3}, .popularity = {}};
  Batch prompt;
  prompt.page_tokens = 64;
  prompt.sequences = {{0, 8, 0, 8, {0}}};
  const BatchPtr batch = std::make_shared<const Batch>(prompt);
  IterationRoutes routes(job);
  routes.begin({batch, batch, batch, batch});
  const ServingShape shape(job);
  const RoutePtr route = routes.get(0, 1);
  const FragmentPtr fragment = lower_iteration(shape, {batch, {}, [&](int) { return route; }});
  const auto found = std::ranges::find(fragment->ops, OpKind::kDispatch, &Op::kind);
  REQUIRE(found != fragment->ops.end());
  return *found;
}

TEST_CASE(
    "tokens in FP8 are gathered in BF16 and quantised where they are multiplied, others go as they are") {
  const double weights = 4.0 * small_model().experts.active;  // FP32, with each row
  const std::int64_t hidden = small_model().hidden;
  for (const auto& [format, sent, gathered] : {std::tuple{DType::kBf16, DType::kBf16, DType::kBf16},
                                               {DType::kFp8, DType::kFp8, DType::kBf16},
                                               {DType::kFp4, DType::kFp4, DType::kFp4}}) {
    INFO(to_string(format));
    for (const auto& [exchange, travels] :
         {std::pair{Algorithm::kHierarchical, sent}, {Algorithm::kRing, gathered}}) {
      const Op op = dispatched(format, exchange);
      REQUIRE(op.algorithm == exchange);
      REQUIRE(op.dtype == travels);
      REQUIRE(op.payload.value == Approx(hidden * element_bytes(travels) + weights));
    }
  }
}

}  // namespace
}  // namespace moebius
