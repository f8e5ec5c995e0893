#include "hw/error.h"

#include <functional>

#include <fmt/format.h>

#include "tests/catch.h"

#include "small_timeline.h"
#include "workloads/schedule/compare.h"

using namespace moebius;
using Catch::Matchers::Contains;

namespace {

Comparison compared(const Timeline& a, const Timeline& b) {
  return compare(mapped(a), mapped(b));
}

Comparison compared_with(const std::function<void(Timeline&)>& change) {
  Timeline b = small_timeline();
  change(b);
  return compared(small_timeline(), b);
}

}  // namespace

TEST_CASE("a run is the same as itself") {
  const Comparison c = compared(small_timeline(), small_timeline());
  REQUIRE(c.same_structure());
  REQUIRE(c.joined == 5);
  REQUIRE(c.makespan_a == Time{50});
  REQUIRE(c.first_differences.empty());
  for (const KindError& kind : c.kinds) REQUIRE(kind.worst == 0);
}

TEST_CASE("durations are compared by kind, the longest kind of a first") {
  // a: gemms of 10 and 12 ns; b: of 15 and 12 ns.
  Timeline b = small_timeline();
  b.spans[1] = {.sequence = 0, .op = 0, .start = {0}, .end = {15}};
  b.spans[3] = {.sequence = 0, .op = 1, .lane = Lane::kExpertComm, .start = {15}, .end = {20}};
  const Comparison c = compared(small_timeline(), b);
  REQUIRE(c.same_structure());
  REQUIRE(c.kinds.size() == 3);
  REQUIRE(c.kinds[0].kind == OpKind::kGemmDgrad);
  const KindError& gemm = c.kinds[1];
  REQUIRE(gemm.kind == OpKind::kGemm);
  REQUIRE(gemm.count == 2);
  REQUIRE(gemm.seconds_a == Approx(22e-9));
  REQUIRE(gemm.seconds_b == Approx(27e-9));
  REQUIRE(gemm.bias == Approx(27.0 / 22 - 1));
  REQUIRE(gemm.median == 0);
  REQUIRE(gemm.p90 == Approx(0.5));
  REQUIRE(gemm.worst == Approx(0.5));
  // Transfers without waiting: 8 ns (12..20) and 8 ns in a, 5 and 8 ns in b.
  REQUIRE(c.kinds[2].seconds_a == Approx(16e-9));
  REQUIRE(c.kinds[2].seconds_b == Approx(13e-9));
}

// As a prediction b would be judged: 22 ns foretold of 27, half of the larger op missing by a third.
TEST_CASE("errors are shares of the run that they are told against") {
  Timeline b = small_timeline();
  b.spans[1] = {.sequence = 0, .op = 0, .start = {0}, .end = {15}};
  b.spans[3] = {.sequence = 0, .op = 1, .lane = Lane::kExpertComm, .start = {15}, .end = {20}};
  const Comparison c = compare(mapped(small_timeline()), mapped(b), ErrorBase::kB);
  REQUIRE(c.kinds[1].kind == OpKind::kGemm);
  CHECK(c.kinds[1].bias == Approx(22.0 / 27 - 1));
  CHECK(c.kinds[1].worst == Approx(5.0 / 15));
  const double makespans = c.makespan_a.seconds() / c.makespan_b.seconds() - 1;
  CHECK_THAT(to_text(c, "simulated", "executed"),
             Contains(fmt::format("a: simulated: {} ({:+.1f}%)", to_text(c.makespan_a), 100 * makespans)) &&
                 Contains("Time of a against b by kind"));
}

TEST_CASE("an op that one run does not have is told") {
  const Comparison c = compared_with([](Timeline& b) { b.spans.pop_back(); });
  REQUIRE_FALSE(c.same_structure());
  REQUIRE(c.only_a == 1);
  REQUIRE(c.first_differences ==
          std::vector<std::string>{"only in a: submission 2 (backward on rank 0, step 0, microbatch 0), op 0 "
                                   "gemm_dgrad none bf16 m=8 n=32 k=16"});
}

TEST_CASE("an op of other work is told") {
  const Comparison c = compared_with([](Timeline& b) { b.ops[1].payload = 65; });
  REQUIRE_FALSE(c.same_structure());
  REQUIRE(c.different_ops == 2);  // in both submissions of the fragment
  REQUIRE_THAT(c.first_differences.at(0),
               Contains("payload=64 on expert against dispatch") && Contains("payload=65"));
}

TEST_CASE("another order on a lane is told") {
  // Rank 0 runs the backward gemm before the forward one.
  const Comparison c =
      compared_with([](Timeline& b) { b.spans[1] = {.sequence = 0, .op = 0, .start = {60}, .end = {70}}; });
  REQUIRE(c.order_violations == 1);
  REQUIRE(c.first_differences.at(0) ==
          "rank 0, lane compute: a starts submission 0 op 0 before submission 2 op 0, b after it");
}

TEST_CASE("runs of other schedules are compared as far as they go, and told apart") {
  const Comparison c = compared_with([](Timeline& b) {
    b.facts[1].second = "00fe";
    b.submissions[2].microbatch = 1;
  });
  REQUIRE_FALSE(c.same_structure());
  REQUIRE(c.joined == 5);
  REQUIRE(c.first_differences ==
          std::vector<std::string>{
              "schedules differ: 00ff against 00fe",
              "submission 2: backward on rank 0, step 0, microbatch 0 against backward on rank 0, "
              "step 0, microbatch 1"});
}

TEST_CASE("other ranks do not join") {
  const Comparison c = compared_with([](Timeline& b) { b.class_ranks[1] = 5; });
  REQUIRE(c.joined == 3);
  REQUIRE(c.only_a == 2);
  REQUIRE(c.only_b == 2);
  REQUIRE(c.first_differences.at(0) == "the rank classes have other members");
}

TEST_CASE("runs that did not keep their ops cannot be compared") {
  Timeline steps = small_timeline();
  steps.facts[2].second = "steps";
  REQUIRE_THROWS_WITH(compared(small_timeline(), steps), "run b kept steps in its timeline, expected ops");
}

TEST_CASE("a comparison reads as a verdict, what differs, and a table by kind") {
  Timeline b = small_timeline();
  b.spans[4].end = {110};
  const std::string same = to_text(compared(small_timeline(), b), "sim", "host");
  REQUIRE_THAT(same, Contains("b: host: 110 ns (+120.0%)"));
  REQUIRE_THAT(same, Contains("structure: the same: 5 ops joined"));
  REQUIRE_THAT(same, Contains("gemm_dgrad") && Contains("+200.0%"));
  b.spans.pop_back();
  const std::string different = to_text(compared(small_timeline(), b), "sim", "host");
  REQUIRE_THAT(different,
               Contains("structure: DIFFERENT: 4 ops joined, 1 only in a\n  only in a: submission 2"));
}

// 50 ns of one step against 110 ns of four: 27.5 ns each, shown in whole ones.
TEST_CASE("training of other lengths is compared by the step") {
  Timeline a = small_timeline(), b = small_timeline();
  a.facts.emplace_back("training_steps", "1");
  b.facts.emplace_back("training_steps", "4");
  b.spans[4].end = {110};
  const std::string text = to_text(compared(a, b), "one", "four");
  CHECK_THAT(text, Contains("a: one: 50 ns, 1 step of 50 ns"));
  CHECK_THAT(text, Contains("b: four: 110 ns, 4 steps of 28 ns (-45.0% a step)"));
  b.facts.emplace_back("dropped_spans", "7");  // what it kept is not what four steps took
  CHECK_FALSE(compared(a, b).by_step());
}

TEST_CASE("ops of other work are not among those that are joined") {
  const Comparison c = compared_with([](Timeline& b) { b.ops[1].payload = 65; });
  CHECK(c.joined == 3);
  CHECK(c.different_ops == 2);
  CHECK(c.only_a == 0);
}

TEST_CASE("a run without a schedule's hash is told to have none") {
  const Comparison c = compared_with([](Timeline& b) { b.facts.erase(b.facts.begin() + 1); });
  CHECK(c.first_differences.at(0) == "schedules differ: 00ff against none");
}
