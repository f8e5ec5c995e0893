// What must hold wherever shared experts are computed.
#include <algorithm>

#include <catch2/catch.hpp>

#include "../unit/training/small_job.h"
#include "models/model.h"
#include "tests/process.h"
#include "workloads/serving/balancing/balance_plan.h"
#include "workloads/serving/iteration_routes.h"
#include "workloads/serving/lower.h"
#include "workloads/serving/serving.h"
#include "workloads/serving/shared_experts.h"

namespace moebius {
namespace {

// Of the small model's eight experts and the shared one, all as large: so many slots on four ranks.
ServingJob four_ranks(SharedExperts where, int slots) {
  ServingJob job;
  job.plan.dp = job.plan.ep = 4;
  job.plan.max_batch = 4;
  job.plan.token_budget = 16;
  job.plan.block_tokens = 4;
  job.plan.shared_experts = where;
  job.plan.expert_slots = slots;
  if (where == SharedExperts::kFused) job.plan.shared_copies = 4;
  job.model = served_model(small_model(), job.plan);
  job.workload = {.requests = 4, .input = {8, 8}, .output = {3, 3}, .popularity = {}};
  job.ranks_per_node = 4;
  return job;
}

ServingJob one_rank(SharedExperts where) {
  ServingJob job = four_ranks(where, 0);
  job.plan.dp = job.plan.ep = 1;
  job.plan.shared_copies = 0;
  return job;
}

BatchPtr rows(int count) {
  Batch batch;
  batch.page_tokens = 64;
  batch.sequences = {{0, count, 0, count, {0}}};
  return std::make_shared<const Batch>(batch);
}

RoutePtr route_of(const ServingJob& job, const std::vector<int>& tokens) {
  IterationRoutes routes(job);
  std::vector<BatchPtr> batches;
  for (const int of_rank : tokens) batches.push_back(rows(of_rank));
  routes.begin(batches);
  return routes.get(0, 1);
}

double weights(const ServingJob& job) {
  Serving serving(job);
  return serving.memory(Bytes{1e12}).classes.front().at_peak[static_cast<int>(MemoryKind::kWeights)].value;
}

}  // namespace

// Zuo et al. 2025 (arXiv 2506.12708), the decode instance: EP 320 with 32 ranks of the shared expert and 288
// of routed ones, 32 of which are redundant. Nothing is said of that here: all tokens use one expert, a 32nd
// of them each other one, and 63 slots go where loads ask for them.
TEST_CASE("placing by load gives CloudMatrix's shared expert its 32 ranks of 320") {
  ServingPlan plan;
  plan.dp = plan.ep = 320;
  plan.shared_experts = SharedExperts::kRouted;
  const Model model = served_model(ModelCatalog().model("deepseek-r1"), plan);
  plan.expert_slots = ExpertBalancePlan{.policy = BalancePolicy::kStatic, .redundant = 63}.slots(257, 320);
  REQUIRE(plan.expert_slots == 320);
  const ExpertSlotsPtr slots = even_slots(plan, model.experts);
  const auto shared = *std::max_element(slots->expert_of_slot.begin(), slots->expert_of_slot.end());
  CHECK(shared == 288);
  CHECK(std::count(slots->expert_of_slot.begin(), slots->expert_of_slot.end(), shared) == 32);
}

TEST_CASE("tokens go to one expert more where the shared one is among the routed") {
  const std::vector<int> tokens{24, 24, 24, 24};
  const auto pairs = [&](const ServingJob& job) {
    const RoutePtr route = route_of(job, tokens);
    int sum = 0;
    for (int rank = 0; rank < 4; ++rank) sum += route->rows_of_rank(rank);
    return sum;
  };
  CHECK(pairs(four_ranks(SharedExperts::kSeparate, 0)) == 96 * 2);
  CHECK(pairs(four_ranks(SharedExperts::kFused, 12)) == 96 * 3);
  CHECK(pairs(four_ranks(SharedExperts::kRouted, 12)) == 96 * 3);
}

TEST_CASE("copies on every rank keep their tokens at home, placed ones share them equally") {
  const std::vector<int> tokens{40, 8, 8, 40};
  const RoutePtr fused = route_of(four_ranks(SharedExperts::kFused, 12), tokens);
  for (int rank = 0; rank < 4; ++rank) CHECK(fused->rows(rank, 2) == tokens[rank]);
  // Nine experts in twelve slots, 2/8 of the tokens and all of them: copies of the shared one until each has
  // a quarter, four in all.
  const ServingJob job = four_ranks(SharedExperts::kRouted, 12);
  const RoutePtr routed = route_of(job, tokens);
  int copies = 0;
  for (int slot = 0; slot < 12; ++slot) {
    if (routed->spec().placed->expert_of_slot[slot] != 8) continue;
    CHECK(routed->rows(slot / 3, slot % 3) == 24);
    ++copies;
  }
  CHECK(copies == 4);
}

TEST_CASE("a shared expert's weights are held once for each slot that it has") {
  const double separate = weights(four_ranks(SharedExperts::kSeparate, 0));
  const Model model = small_model();
  // Gate, up and down in BF16, of three layers with experts.
  const double expert = 3.0 * 3 * model.hidden * model.experts.width * 2;
  CHECK(weights(four_ranks(SharedExperts::kFused, 12)) == separate);
  CHECK(weights(four_ranks(SharedExperts::kRouted, 12)) == separate);
  CHECK(weights(four_ranks(SharedExperts::kRouted, 16)) == separate + expert);
  CHECK(weights(one_rank(SharedExperts::kFused)) == weights(one_rank(SharedExperts::kSeparate)));
}

// Ranks that have half of the shared experts' columns each weigh their part of the sum by the same number.
TEST_CASE("a gate of shared experts is one row more on each rank, whole where ranks cut the experts") {
  ServingJob halves = one_rank(SharedExperts::kSeparate);
  halves.plan.tp = 2;
  for (ServingJob job : {four_ranks(SharedExperts::kSeparate, 0), halves}) {
    const double without = weights(job);
    job.model.experts.shared_gate = true;
    CHECK(weights(job) == without + 3.0 * job.model.hidden * 2);  // BF16, three layers with experts
  }
}

TEST_CASE("on one rank placing the shared expert is fusing it: one product less, the same schedule") {
  const auto lowered = [](SharedExperts where) {
    const ServingJob job = one_rank(where);
    const ServingShape shape(job);
    const RoutePtr route = route_of(job, {8});
    return lower_iteration(shape, {rows(8), {}, [&](int) { return route; }});
  };
  const auto products = [](const FragmentPtr& fragment, OpKind kind) {
    return std::count_if(fragment->ops.begin(), fragment->ops.end(),
                         [&](const Op& op) { return op.kind == kind; });
  };
  const FragmentPtr separate = lowered(SharedExperts::kSeparate), fused = lowered(SharedExperts::kFused);
  CHECK(lowered(SharedExperts::kRouted)->hash == fused->hash);
  // Two linear maps of the shared expert in each of three layers; the grouped ones are as many as before.
  CHECK(products(separate, OpKind::kGemm) - products(fused, OpKind::kGemm) == 6);
  CHECK(products(separate, OpKind::kGroupedGemm) == products(fused, OpKind::kGroupedGemm));
}

TEST_CASE("shared experts that stay separate change nothing of a schedule") {
  const test::Scratch scratch;
  const std::string run =
      std::string("run ") + MOEBIUS_SOURCE_DIR + "/scenarios/smoke/serve-small.json --json --dump ";
  REQUIRE(test::run_moebius(run + scratch.path("absent.txt")).exit_code == 0);
  REQUIRE(
      test::run_moebius(run + scratch.path("given.txt") + " --set /plan/decode/ep/shared_experts=separate")
          .exit_code == 0);
  const std::string absent = test::text_of(scratch.path("absent.txt"));
  CHECK(!absent.empty());
  CHECK(test::text_of(scratch.path("given.txt")) == absent);
}

TEST_CASE("a model computes as much with its shared experts among the routed ones") {
  const Model apart = ModelCatalog().model("deepseek-v3"), among = shared_among_routed(apart);
  CHECK(count_parameters(among).total() == count_parameters(apart).total());
  CHECK(active_parameters(among) == active_parameters(apart));
  CHECK(forward_flops_per_token(among, 4096, true).value == forward_flops_per_token(apart, 4096, true).value);
  CHECK(served_model(apart, {}).experts == apart.experts);
}

}  // namespace moebius
