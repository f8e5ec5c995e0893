// Laws of attention and experts that stand apart.
#include <catch2/catch.hpp>

#include <algorithm>

#include "../unit/training/small_job.h"
#include "small_world.h"
#include "workloads/schedule/recorder.h"
#include "workloads/serving/separation/microbatches.h"
#include "workloads/serving/separation/separated_iteration.h"
#include "workloads/serving/separation/separated_layout.h"
#include "workloads/serving/serving.h"

using namespace moebius;

namespace {

constexpr int kAttentionRanks = 2, kExpertRanks = 2;

// Requests that all decode together, on each replica four of them; experts in every layer, none shared.
ServingJob job_of(int layers, int microbatches) {
  ServingJob job;
  job.model = small_model();
  job.model.layers = layers;
  job.model.first_dense = 0;
  job.model.moe_step = 1;
  job.model.experts.shared = job.model.experts.shared_width = 0;
  job.plan.dp = kAttentionRanks;
  job.plan.ep = kExpertRanks;
  job.plan.apart = {kExpertRanks, microbatches, kAttentionRanks, kExpertRanks};
  job.plan.max_batch = 4;
  job.plan.token_budget = 64;
  job.plan.block_tokens = 4;
  job.workload = {.requests = 8, .input = {8, 8}, .output = {3, 3}, .popularity = {}};
  job.ranks_per_node = kAttentionRanks;
  return job;
}

// So many sequences with a token each behind eight.
BatchPtr decoding(std::int32_t sequences) {
  Batch batch;
  batch.page_tokens = 4;
  for (std::int32_t i = 0; i < sequences; ++i)
    batch.sequences.push_back({i, 8, 8, 1, {3 * i, 3 * i + 1, 3 * i + 2}});
  return std::make_shared<const Batch>(std::move(batch));
}

struct Costs {
  double attention = 0, experts = 0;  // of a microbatch and layer
};

// Of one decode iteration.
double decode_seconds(const ServingJob& job, const World& world, const Costs& costs) {
  const NamedCost cost(
      {{OpKind::kPagedAttention, {costs.attention}}, {OpKind::kGroupedGemm, {costs.experts / 2}}});
  const Cluster cluster = make_cluster(world);
  Serving serving(job);
  Recorder recorder(serving.layout(), {.detail = Detail::kNone});
  auto executor = make_sim_executor(cluster, serving.layout(), {&cost}, recorder,
                                    {NetworkDetail::kFluid, Driver::kPlain});
  execute(serving, *executor, recorder);
  return serving.figures({}).itl.p50;
}

// What each further layer takes.
double layer_seconds(int microbatches, const World& world, const Costs& costs) {
  return (decode_seconds(job_of(12, microbatches), world, costs) -
          decode_seconds(job_of(4, microbatches), world, costs)) /
         8;
}

}  // namespace

// A side works through m microbatches a layer, and one microbatch goes through attention, there, experts and
// back: the longest of m Ta, m Tf and Ta + Tf + 2 Tc is what a layer takes. Without ways to go two
// microbatches keep both of two equal sides busy: 2 Ta a layer, which is what either side computes.
TEST_CASE("microbatches that go to and fro take as long as the longer side, or as one of them all the way") {
  const World world = instant_network(kAttentionRanks + kExpertRanks);
  constexpr double kUnit = 0.1;  // beside which what starts an exchange is nothing
  const struct {
    double attention, experts;
    int microbatches;
    double expected;
  } cases[] = {{1, 1, 1, 2}, {1, 1, 2, 2}, {1, 1, 4, 4}, {1, 2, 2, 4}, {3, 1, 2, 6}, {3, 1, 1, 4}};
  for (const auto& c : cases) {
    INFO(c.attention << " and " << c.experts << ", " << c.microbatches << " microbatches");
    CHECK(layer_seconds(c.microbatches, world, {c.attention * kUnit, c.experts * kUnit}) ==
          Approx(c.expected * kUnit).epsilon(1e-3));
  }
}

// One microbatch tells Ta + Tf + 2 Tc; with ways as long as half a stage (2 Tc = Ta = Tf) that is three
// stages: two microbatches leave each side idle for a third, three keep both busy.
TEST_CASE("ways of half a stage take three microbatches to hide") {
  World world = instant_network(kAttentionRanks + kExpertRanks);
  world.link_latency = Time{500'000};
  const double there_and_back = layer_seconds(1, world, {1e-6, 1e-6}) - 2e-6;
  const Costs stages{there_and_back, there_and_back};
  const double stage = there_and_back;
  CHECK(layer_seconds(1, world, stages) == Approx(3 * stage).epsilon(1e-3));
  CHECK(layer_seconds(2, world, stages) == Approx(3 * stage).epsilon(1e-3));
  CHECK(layer_seconds(3, world, stages) == Approx(3 * stage).epsilon(1e-3));
  CHECK(layer_seconds(4, world, stages) == Approx(4 * stage).epsilon(1e-3));
}

// Both kinds of rank folded or each by itself.
TEST_CASE("one rank stands for all of its side") {
  const World world{.nodes = 2, .per_node = 2};
  ServingJob folded = job_of(6, 2), unfolded = folded;
  unfolded.plan.fold = false;
  const Costs costs{2e-4, 1e-4};
  CHECK(decode_seconds(folded, world, costs) == Approx(decode_seconds(unfolded, world, costs)).epsilon(5e-3));
}

// With an expert a rank, every token goes to as many ranks as it has experts: its row and weights there, a
// row back, in each layer. Eight requests of 8 tokens are prefilled whole and decode twice (the last of three
// tokens is not fed back).
TEST_CASE("tokens go once to each rank that has one of their experts") {
  ServingJob job = job_of(3, 2);
  const Experts& experts = job.model.experts;
  job.plan.ep = job.plan.apart.ranks = experts.routed;
  const Cluster cluster = make_cluster(instant_network(job.plan.ranks()));
  const NamedCost cost({});
  Serving serving(job);
  Recorder recorder(serving.layout(), {.detail = Detail::kNone});
  auto executor = make_sim_executor(cluster, serving.layout(), {&cost}, recorder,
                                    {NetworkDetail::kFluid, Driver::kPlain});
  execute(serving, *executor, recorder);
  const double tokens = 8 * 8 + 8 * 2, row = 2.0 * job.model.hidden, weights = 4.0 * experts.active;
  CHECK(recorder.finish(executor->now()).sent_bytes ==
        Approx(tokens * 3 * experts.active * (row + weights + row)));
}

TEST_CASE("parts of a batch are its sequences in order, or its rows") {
  Batch batch;
  batch.page_tokens = 4;
  for (std::int32_t i = 0; i < 3; ++i) batch.sequences.push_back({i, 8, 0, 8, {2 * i, 2 * i + 1}});
  CHECK(parts_of(batch, 5, PromptCut::kWhole) == 3);
  CHECK(parts_of(batch, 5, PromptCut::kAnywhere) == 5);
  const auto whole = split_batch(batch, 2, PromptCut::kWhole);
  CHECK(whole[0]->rows() + whole[1]->rows() == 24);
  CHECK(whole[0]->sequences.size() + whole[1]->sequences.size() == 3);
  // 24 rows in 2 parts of 12: the second prompt is cut after 4 tokens, and its second half sees one page.
  const auto cut = split_batch(batch, 2, PromptCut::kAnywhere);
  REQUIRE(cut[0]->sequences.size() == 2);
  CHECK(cut[0]->sequences[1].count == 4);
  CHECK(cut[0]->sequences[1].pages.size() == 1);
  CHECK(cut[1]->sequences[0].past == 4);
  CHECK(cut[1]->sequences[0].pages.size() == 2);
  for (const BatchPtr& part : cut) CHECK(find_fault(*part) == "");
}

// Two of eight experts a token, the first four of which are eight times as popular: seven in eight go there.
TEST_CASE("tokens go to experts apart by the loads of their slots, and few to others in each layer") {
  const ServingJob job = job_of(2, 1);
  SeparatedRoutes routes(job);
  SlotDraw loads;
  loads.weights = {ExpertWeights(std::vector<double>{8, 8, 8, 8, 1, 1, 1, 1})};
  routes.draw(&loads);
  routes.begin({{decoding(64)}, {decoding(64)}});
  const RoutePtr route = routes.get(0, 0);
  CHECK(route->rows_of_rank(2) + route->rows_of_rank(3) == 2 * 64 * 2);
  CHECK(route->rows_of_rank(2) > 3 * route->rows_of_rank(3));
  routes.draw(nullptr);
  routes.begin({{decoding(1)}, {decoding(1)}});
  CHECK(routes.get(0, 0)->spec().seed != routes.get(1, 0)->spec().seed);
}

TEST_CASE("kernels of both sides are launched and joined as the plan says") {
  ServingJob job = job_of(2, 2);
  job.plan.fused = true;
  job.plan.launch = LaunchMode::kKernel;
  const ServingShape shape(job);
  SeparatedIteration iteration(job, shape, PromptCut::kWhole);
  iteration.begin({decoding(4), decoding(4)});
  for (const RankClass& of : separated_layout(job.plan).classes) {
    const FragmentPtr fragment = iteration.fragment(of);
    CHECK(fragment->launch == LaunchMode::kKernel);
    const bool fused =
        std::any_of(fragment->ops.begin(), fragment->ops.end(), [](const Op& op) { return op.fused; });
    CHECK(fused == !holds_experts(job.plan, of));
  }
}
