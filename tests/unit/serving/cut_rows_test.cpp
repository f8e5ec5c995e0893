// Replicas of several ranks that share experts with others: each rank has a share of the rows between one
// attention and the next.
#include <map>
#include <numeric>

#include "tests/unit/serving/expert_sharing.h"
#include "workloads/serving/cut_prompts.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/lower.h"

#include "tests/catch.h"

namespace moebius {
namespace {

constexpr int kTensor = 2, kReplicas = 2;

ServingJob job_of(AttentionKind attention) {
  ServingJob job = expert_sharing_job(kTensor * kReplicas);
  job.plan.tp = kTensor;
  job.plan.dp = kReplicas;
  job.plan.ep = kTensor * kReplicas;
  job.model.attention = attention;
  job.model.head_dim = 16;
  return job;
}

FragmentPtr iteration_of(const ServingJob& job, std::int32_t tokens) {
  const std::vector<BatchPtr> batches(kReplicas, whole_prompt(tokens));
  IterationRoutes routes(job);
  routes.begin(batches);
  const ServingShape shape(job);
  return lower_iteration(shape, {batches[0], {}, [&](int layer) { return routes.get(0, layer); }});
}

TEST_CASE("ranks of a replica send a share of its rows to experts and attend to all of them") {
  for (const AttentionKind attention : {AttentionKind::kGqa, AttentionKind::kMla}) {
    const ServingJob job = job_of(attention);
    for (const auto& [tokens, share] : {std::pair{8, 4}, {9, 5}}) {
      INFO(tokens << " rows, attention " << static_cast<int>(attention));
      const FragmentPtr fragment = iteration_of(job, tokens);
      std::map<OpKind, int> ops;
      for (const Op& op : fragment->ops) {
        ++ops[op.kind];
        if (op.kind == OpKind::kDispatch || op.kind == OpKind::kGate || op.kind == OpKind::kCombine)
          CHECK(op.shape.m == share);
        if (op.kind == OpKind::kGemm && op.role == Role::kO) CHECK(op.shape.m == tokens);
        if (op.kind == OpKind::kReduceScatter)
          CHECK(fragment->tensors[fragment->output(op, 0)].rows == share);
      }
      // Into attention and dense MLPs of each layer, and to the last row and its token; out of them and of
      // the embedding.
      const int dense = job.model.first_dense;
      CHECK(ops[OpKind::kAllGather] == job.model.layers + dense + 2);
      CHECK(ops[OpKind::kReduceScatter] == job.model.layers + dense + 1);
      CHECK(ops[OpKind::kAllReduce] == 0);
      CHECK(ops[OpKind::kDispatch] == job.model.layers - dense);
    }
  }
}

// DeepEP carries tokens that decode; prompts stay where they are.
TEST_CASE("ranks of a replica share its rows and send them to experts in the phase whose dispatch says so") {
  ServingJob job = expert_sharing_job(kTensor);
  job.plan.tp = job.plan.ep = kTensor;
  job.plan.decode_exchange = Algorithm::kDirect;
  const auto token = std::make_shared<const Batch>(Batch{64, {{0, 8, 8, 1, {0}}, {1, 8, 8, 1, {1}}}});
  for (const bool decodes : {false, true}) {
    INFO((decodes ? "tokens" : "prompts"));
    const BatchPtr batch = decodes ? token : whole_prompt(8);
    IterationRoutes routes(job);
    routes.begin({batch});
    const ServingShape shape(job);
    const FragmentPtr fragment =
        lower_iteration(shape, {batch, {}, [&](int layer) { return routes.get(0, layer); }});
    std::map<OpKind, int> ops;
    for (const Op& op : fragment->ops) ++ops[op.kind];
    const int moe_layers = job.model.layers - job.model.first_dense;
    CHECK(ops[OpKind::kDispatch] == (decodes ? moe_layers : 0));
    CHECK((ops[OpKind::kAllReduce] == 0) == decodes);
    const std::vector<std::int32_t> copies = routes.get(0, 1)->copies_of_experts();
    CHECK(std::accumulate(copies.begin(), copies.end(), 0) == batch->rows() * job.model.experts.active);
  }
}

TEST_CASE("experts get each row of a replica once, and what is padded where ranks do not divide them") {
  for (const PopularityKind kind : {PopularityKind::kBalanced, PopularityKind::kZipf}) {
    ServingJob job = job_of(AttentionKind::kGqa);
    job.workload.popularity.kind = kind;
    for (const auto& [tokens, share] : {std::pair{64, 32}, {65, 33}, {1, 1}}) {
      INFO(tokens << " rows, popularity " << static_cast<int>(kind));
      IterationRoutes routes(job);
      routes.begin(std::vector<BatchPtr>(kReplicas, whole_prompt(tokens)));
      const std::vector<std::int32_t> copies = routes.get(0, 1)->copies_of_experts();
      CHECK(std::accumulate(copies.begin(), copies.end(), 0) ==
            kTensor * kReplicas * share * job.model.experts.active);
    }
  }
}

// Five rows and three of padding on four ranks: the last one has padding alone.
TEST_CASE("each row of padding has experts where executors compute it") {
  ServingJob job = expert_sharing_job(8);
  job.plan.tp = 4;
  job.plan.dp = 2;
  job.plan.ep = 8;
  Batch padded{64, {{0, 5, 0, 5, {0}}}};
  for (std::int32_t page = 1; page <= 3; ++page) padded.sequences.push_back({-1, 1, 0, 1, {page}});
  const std::vector<BatchPtr> batches(2, std::make_shared<const Batch>(padded));
  for (const PopularityKind kind : {PopularityKind::kBalanced, PopularityKind::kZipf}) {
    INFO("popularity " << static_cast<int>(kind));
    job.workload.popularity.kind = kind;
    IterationRoutes routes(job);
    routes.place_padding();
    routes.begin(batches);
    const RoutePtr route = routes.get(0, 1);
    for (int member = 0; member < 8; ++member) CHECK(route->tokens_of(member) == 2);
  }
}

// Weights of one slot each: what is alike is not drawn anew.
TEST_CASE("rows that ranks repeat choose the experts of one token where slots are drawn") {
  ServingJob job = expert_sharing_job(8);
  job.plan.tp = job.plan.ep = 4;
  job.plan.decode_exchange = Algorithm::kDirect;
  const SlotDraw even{.weights = {ExpertWeights(std::vector<double>(8, 1.0))}};
  const auto token = std::make_shared<const Batch>(Batch{64, {{0, 8, 8, 1, {0}}}});
  IterationRoutes routes(job);
  routes.draw(&even);
  routes.begin({token});
  const RoutePtr route = routes.get(0, 1);
  const std::vector<std::int32_t> alike = route->choices(1);
  CHECK(alike.size() == 2);
  CHECK(route->choices(2) == alike);
  CHECK(route->choices(3) == alike);
}

TEST_CASE("runs of rows follow each other and end with the batch") {
  Batch batch{64, {{0, 5, 0, 5, {0}}, {1, 9, 4, 1, {1}}, {2, 4, 0, 4, {2}}}};
  const auto runs = cut_rows({std::make_shared<const Batch>(batch)}, 4);  // 10 rows: 3 each, and 2 again
  REQUIRE(runs.size() == 4);
  std::vector<std::int64_t> firsts, rows;
  for (const BatchPtr& run : runs) {
    rows.push_back(run->rows());
    firsts.push_back(run->sequences.front().request * 100 + run->sequences.front().past);
  }
  CHECK(rows == std::vector<std::int64_t>{3, 3, 3, 3});
  CHECK(firsts == std::vector<std::int64_t>{0, 3, 200, 201});
  CHECK(runs[1]->sequences.size() == 2);
}

}  // namespace
}  // namespace moebius
