// The search for plans of a service: nothing does better than its bounds, and what they lead to is the best
// of all plans run one by one.
#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "hw/error.h"
#include "tests/catch.h"
#include "tests/laws/simulator.h"
#include "workloads/study/search/document_changes.h"
#include "workloads/study/search/serving_search.h"

namespace moebius {
namespace {

// A few small layers on one or two nodes; requests that are there at once, that users ask for, or that come
// at times of their own.
Document serving_problem(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<const char*> values) {
    return values.begin()[random() % values.size()];
  };
  const char* traffic = one_of(
      {R"({"generator": "batch", "requests": 32, "input": {"uniform": [64, 900]}, "output": {"uniform": [2, 40]}})",
       R"({"generator": "batch", "requests": 40, "input": 512, "output": 32})",
       R"({"generator": "conversation", "requests": 30, "rate": 200, "context_tokens": 4096, "output_tokens": 30})",
       R"({"generator": "conversation", "requests": 30, "rate": 2000, "context_tokens": 4096, "output_tokens": 30})"});
  const bool drawn = std::string(traffic).find("batch") == std::string::npos;
  const char* users = drawn && random() % 3 == 0 ? R"(, "users": 12)" : "";
  return parse_document(
      fmt::format(
          R"({{"moebius": 1, "kind": "serving", "name": "problem {}", "seed": {},
        "model": {{"base": "mixtral-8x22b", "layers": 4, "hidden": {}, "experts": {{"routed": 8, "active": 2, "width": {}}}}},
        "cluster": {{"pools": [{{"name": "a", "accelerator": "{}", "node": "hgx-8", "nodes": {}}}],
                     "fabric": {{"type": "rail-optimised-clos", "nic": "400 Gb/s"}}}},
        "plan": {{"decode": {{"max_batch": 32}}, "cache": {{"block_tokens": 64, "prefix": {}}}}},
        "workload": {{"trace": {}{}, "experts": {{"popularity": "balanced"}}}},
        "sla": [{{"class": "all", "ttft": "{}", "tpot": "{}"}}]}})",
          seed, seed, one_of({"1024", "4096"}), one_of({"1024", "16384"}), one_of({"h100-sxm", "h800-sxm"}),
          seed % 4 == 0 ? "2" : "1", drawn ? "true" : "false", traffic, users,
          one_of({"5 ms", "30 ms", "1 s"}), one_of({"400 us", "1 ms", "3 ms"})),
      "problem");
}

SpaceFile serving_space(std::uint32_t seed) {
  SpaceFile space{"space", {}};
  for (const char* phase : {"/plan/prefill", "/plan/decode"}) {
    space.axes.push_back({fmt::format("{}/attention/tp", phase), {"1", seed % 2 == 0 ? "2" : "8"}});
    space.axes.push_back({fmt::format("{}/ep/degree", phase), {"1", "8"}});
    space.axes.push_back(
        {fmt::format("{}/two_batch_overlap", phase),
         seed % 3 == 0 ? std::vector<std::string>{"false", "true"} : std::vector<std::string>{"false"}});
  }
  space.axes.push_back({"/plan/decode/max_batch", {"4", "64"}});
  space.axes.push_back({"/plan/prefill/token_budget", {seed % 2 == 0 ? "256" : "2048"}});
  space.axes.push_back({"/plan/scheduler/batching", {seed % 2 == 0 ? "\"prefill-first\"" : "\"mixed\""}});
  space.axes.push_back({"/plan/router", {"\"least-tokens\""}});
  space.axes.push_back({"/plan/cache/dram", {"{}"}});
  return space;
}

// Requests come at times of their own.
bool comes_by_itself(const Document& base) {
  const Value& workload = *base.root.find("workload");
  return workload.find("trace")->find("rate") != nullptr && workload.find("users") == nullptr;
}

SearchRequest serving_request(const Library& library, const Document& base, std::uint32_t seed) {
  SearchRequest request;
  request.rough = simulator(NetworkDetail::kAlphaBeta);
  request.fine = simulator(NetworkDetail::kFluid);
  request.library = &library;
  request.refine = 0;
  request.goal = serving_subject().goals[seed % 4];
  if (request.goal == SearchGoal::kGoodput && comes_by_itself(base) && seed % 8 == 0)
    request.attainment = 0.9;
  return request;
}

double best_of(const SearchResult& result) {
  return result.plans.front().rough.score;
}

}  // namespace

TEST_CASE("the best plan of a service that bounds lead to is the best of all in twenty small problems") {
  const Library library("");
  std::int64_t legal = 0, ran = 0;
  int bounded = 0;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const Document base = serving_problem(seed);
    const SpaceFile space = serving_space(seed);
    SearchRequest request = serving_request(library, base, seed);
    INFO("problem " << seed << ", goal " << name_of(request.goal) << ", attainment " << request.attainment);
    request.top = 10'000;  // none is ruled out
    const SearchResult each = search_serving(base, space, request);
    for (const RankedPlan& plan : each.plans) {
      INFO(plan.name << ": " << plan.rough.value);
      CHECK(plan.bound <= plan.rough.score * (1 + 1e-9));
      bounded += plan.bound > 0.3 * plan.rough.score ? 1 : 0;
    }
    request.prune = false;
    const SearchResult all = search_serving(base, space, request);
    CHECK(all.counts.rough + all.counts.too_large == all.counts.legal);
    // What cannot keep any promise does not run.
    CHECK(each.counts.rough <= all.counts.rough);
    CHECK(each.counts.rough >= std::count_if(all.plans.begin(), all.plans.end(), [](const RankedPlan& plan) {
            return plan.group >= 0 && std::isfinite(plan.rough.score);
          }));
    request.prune = true;
    request.top = 1;
    const SearchResult pruned = search_serving(base, space, request);
    CHECK(best_of(pruned) == best_of(all));
    CHECK(best_of(each) == best_of(all));
    CHECK(pruned.counts.legal == all.counts.legal);
    legal += all.counts.legal, ran += pruned.counts.rough;
  }
  CHECK(legal > 250);
  CHECK(10 * ran < 6 * legal);
  CHECK(4 * bounded > legal);  // they are bounds that say something
}

TEST_CASE("the highest rate of a plan keeps the share of promises that was asked for") {
  const Library library("");
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const Document base = serving_problem(seed);
    SearchRequest request = serving_request(library, base, seed);
    if (request.attainment == 0) continue;
    request.top = 1;
    const SearchResult result = search_serving(base, serving_space(seed), request);
    const PlanFigures& best = result.plans.front().rough;
    INFO("problem " << seed);
    if (best.value > 0) CHECK(best.figure("slo_attainment") >= request.attainment);
  }
}

// And the share of requests that were given what they are promised.
std::pair<double, double> goodput_of(const Document& document, const Library& library) {
  Job job = read_job(document, {}, library);
  Hooks hooks;
  hooks.quiet = true;
  const Outcome outcome = perform(job, simulator(NetworkDetail::kAlphaBeta), hooks);
  return {outcome.report.serving->goodput_rps, outcome.report.serving->slo_attainment};
}

// What is written is what was found: the same rate, and the goodput that the report of a run says.
TEST_CASE("a plan that a search writes does what its figures say") {
  const Library library("");
  int rates = 0, goodputs = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const Document base = serving_problem(seed);
    SearchRequest request = serving_request(library, base, seed);
    request.goal = SearchGoal::kGoodput;
    request.top = 1;
    for (const double attainment : {0.0, 0.5}) {
      request.attainment = attainment;
      if (attainment > 0 && !comes_by_itself(base)) continue;
      const RankedPlan plan = search_serving(base, serving_space(seed), request).plans.front();
      if (plan.group < 0 || plan.rough.value <= 0) continue;
      INFO("problem " << seed << ", attainment " << attainment);
      const auto [goodput, kept] = goodput_of(changed(base, plan.settings), library);
      CHECK(kept == Approx(plan.rough.figure("slo_attainment")));
      CHECK(goodput == Approx(plan.rough.figure("goodput_rps")));
      if (attainment == 0) CHECK(plan.rough.value == Approx(goodput));
      ++(attainment > 0 ? rates : goodputs);
    }
  }
  CHECK(rates > 0);
  CHECK(goodputs > 0);
}

// Neither doubled nor bisected: it is the traffic's own rate, or that of requests which are served alone.
TEST_CASE("a search that is ended tries no further rates of the plan as given") {
  const Library library("");
  int kept = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const Document base = serving_problem(seed);
    if (!comes_by_itself(base)) continue;
    SearchRequest request = serving_request(library, base, seed);
    request.goal = SearchGoal::kGoodput;
    request.attainment = 0.5;
    request.stopped = [] { return true; };
    const SearchResult result = search_serving(base, serving_space(seed), request);
    if (!result.given || result.given->rough.value <= 0) continue;
    INFO("problem " << seed);
    const double times_faster = result.given->rough.times_faster;
    CHECK((times_faster == 1 || times_faster == 1.0 / 4096));
    ++kept;
  }
  CHECK(kept > 0);
}

// The sentence with which a search is refused.
std::string refusal(const Document& base, const SpaceFile& space, SearchRequest request) {
  try {
    search_serving(base, space, request);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "";
}

TEST_CASE("a search of a service that cannot be made is refused with what is missing") {
  const Library library("");
  Document batch = serving_problem(1);
  set_at_pointer(batch, "/workload/trace",
                 R"({"generator": "batch", "requests": 4, "input": 64, "output": 4})");
  set_at_pointer(batch, "/workload/users", "0");
  SearchRequest request = serving_request(library, batch, 4);
  request.goal = SearchGoal::kGoodput;
  request.attainment = 0.9;
  CHECK(
      refusal(batch, serving_space(1), request) ==
      "problem: /workload: --attainment looks for the highest rate of requests: expected requests that come "
      "at times of their own, found all of them at once");
  request.attainment = 0;
  CHECK(refusal(batch, {"space", {{"/workload/trace/rate", {"1"}}}}, request) ==
        "space: /workload/trace/rate: expected a key of /plan, or /cluster/pools/0/nodes: a search keeps "
        "model, machines and traffic");
  CHECK_THAT(refusal(batch, {"space", {{"/plan/decode/max_batchh", {"8"}}}}, request),
             Catch::StartsWith("space: /vary: no value of /plan/decode/max_batchh is legal: ") &&
                 Catch::Contains("unknown key \"max_batchh\" (did you mean \"max_batch\"?)"));
  set_at_pointer(batch, "/sla", "[]");
  CHECK(refusal(batch, serving_space(1), request) ==
        "problem: /sla: goodput counts requests that are given what they are promised: expected promises, "
        "found none; or --goal throughput");
}

}  // namespace moebius
