// Ranks of several replicas that share each expert by columns: they gather the tokens of all, and get back
// the sums of their own.
#include <algorithm>
#include <map>
#include <numeric>

#include "tests/unit/serving/expert_sharing.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/lower.h"

#include "tests/catch.h"

namespace moebius {
namespace {

ServingJob columns_job(int ep, int parts) {
  ServingJob job = expert_sharing_job(ep * parts);
  job.plan.ep = ep;
  job.plan.expert_tp = parts;
  job.plan.dp = ep * parts;
  return job;
}

// The first replica has so many rows, the others one less.
FragmentPtr gathered_iteration(const ServingJob& job, std::int32_t tokens, bool shorter = false) {
  std::vector<BatchPtr> batches(job.plan.dp, whole_prompt(tokens - 1));
  batches.front() = whole_prompt(tokens);
  IterationRoutes routes(job);
  routes.begin(batches);
  const ServingShape shape(job);
  return lower_iteration(shape, {.batch = shorter ? batches.back() : batches.front(),
                                 .shard = {},
                                 .route = [&](int layer) { return routes.get(0, layer); },
                                 .longest = routes.longest(0)});
}

std::int64_t gathered_rows(const Fragment& fragment, const Op& op) {
  return fragment.tensors[fragment.output(op, 0)].rows;
}

TEST_CASE("each layer gathers as many rows of each rank as the longest has, and scatters the sums") {
  const ServingJob job = columns_job(1, 4);
  for (const bool shorter : {false, true}) {
    INFO((shorter ? "a rank with 8 rows" : "the rank with 9 rows"));
    const FragmentPtr fragment = gathered_iteration(job, 9, shorter);
    const std::int64_t own = shorter ? 8 : 9;
    std::map<OpKind, int> ops;
    for (const Op& op : fragment->ops) {
      if (!is_communication(op.kind)) continue;
      ++ops[op.kind];
      CHECK(op.group == GroupRole::kExpertTensor);
      CHECK(gathered_rows(*fragment, op) == (op.kind == OpKind::kAllGather ? 4 * 9 : own));
      CHECK(op.payload.value == Approx(4 * 9 * job.model.hidden * element_bytes(DType::kBf16)));
    }
    const int layers = job.model.layers - job.model.first_dense;
    CHECK(ops == std::map<OpKind, int>{{OpKind::kAllGather, layers}, {OpKind::kReduceScatter, layers}});
  }
}

TEST_CASE("experts compute the tokens of all ranks, each with its share of their columns") {
  for (const auto& [ep, parts] : {std::pair{1, 4}, {2, 2}, {2, 4}}) {
    INFO("ep " << ep << " x tp " << parts);
    const ServingJob job = columns_job(ep, parts);
    const std::int64_t tokens = 9 + 8 * (ep * parts - 1);
    const FragmentPtr fragment = gathered_iteration(job, 9);
    double weights = 0;
    for (const Tensor& tensor : fragment->tensors)
      if (tensor.role == Role::kExpertGateUp && tensor.experts > 0)
        weights += static_cast<double>(tensor.rows) * tensor.columns * tensor.experts;
    const int layers = job.model.layers - job.model.first_dense;
    CHECK(weights ==
          2.0 * job.model.experts.width * job.model.hidden * job.model.experts.routed / ep / parts * layers);
    IterationRoutes routes(job);
    std::vector<BatchPtr> batches(job.plan.dp, whole_prompt(8));
    batches.front() = whole_prompt(9);
    routes.begin(batches);
    const std::vector<std::int32_t> copies = routes.get(0, 1)->copies_of_experts();
    CHECK(std::accumulate(copies.begin(), copies.end(), 0) == tokens * job.model.experts.active);
    for (const Op& op : fragment->ops) {
      if (op.kind == OpKind::kGroupedGemm && op.role == Role::kExpertGateUp)
        CHECK(op.shape.m == Approx(tokens * job.model.experts.active / ep).margin(job.model.experts.routed));
    }
  }
}

// As the kernels are that the tables of experts were measured with.
TEST_CASE("tokens of experts in 8 bits are quantised before they are copied, and summed to as many rows") {
  ServingJob job = columns_job(1, 4);
  job.plan.gemm = DType::kFp8;
  const FragmentPtr fragment = gathered_iteration(job, 9);
  int copied = 0, summed = 0;
  for (const Op& op : fragment->ops) {
    if (op.kind == OpKind::kQuantise && op.role == Role::kExperts) CHECK(op.shape.m == 4 * 9);
    if (op.kind == OpKind::kPermute && ++copied > 0) CHECK(op.dtype == DType::kFp8);
    if (op.kind == OpKind::kUnpermute && ++summed > 0) CHECK(op.shape.k == 4 * 9);
  }
  const int layers = job.model.layers - job.model.first_dense;
  CHECK(copied == layers);
  CHECK(summed == layers);
}

// Rows in 4 bits are no input of a router.
TEST_CASE("rows of products in 4 bits travel in these, with the weights that the router gave them") {
  ServingJob job = columns_job(1, 4);
  job.plan.gemm = DType::kFp4;
  const FragmentPtr fragment = gathered_iteration(job, 8);
  std::vector<DType> gathered;
  for (const Op& op : fragment->ops)
    if (op.kind == OpKind::kAllGather && gathered.size() < 2) gathered.push_back(op.dtype);
  CHECK(gathered == std::vector<DType>{DType::kFp32, DType::kFp4});
}

}  // namespace
}  // namespace moebius
