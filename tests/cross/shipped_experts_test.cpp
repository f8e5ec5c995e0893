// The shipped scenario of experts that move: answers, figures, and what is simulated beside what is executed.
#include <catch2/catch.hpp>

#include "real/host/host_run.h"
#include "tests/cross/shipped_experts.h"

namespace moebius {
namespace {

StartedExecutor execute_on_host(const Job& job, const Layout& layout, Recorder& recorder) {
  return start_host(job, layout, recorder, {});
}

std::vector<std::vector<std::int32_t>> answers_with(const std::string& balance) {
  Job job = moving_job({"/plan/expert_balance=" + balance});
  return perform(job, execute_on_host, {.quiet = true}).report.facts.tokens;
}

std::string simulated_report() {
  Job job = moving_job();
  const std::string json = report_json(perform(job, simulate_plainly, {.quiet = true}).report);
  return json.substr(0, json.find("\"wall_s\""));
}

}  // namespace

TEST_CASE("a service that ships answers the same with experts by number, placed once, and moving") {
  Job job = moving_job();
  const Outcome moving = perform(job, execute_on_host, {.quiet = true});
  const std::string json = report_json(moving.report);
  REQUIRE(moving.report.facts.tokens.size() == 40);
  CHECK(report_value(json, "eplb.decode.rebalances").value_or(0) > 1);
  CHECK(report_value(json, "eplb.decode.moved_experts").value_or(0) > 0);
  for (const char* balance : {R"({"policy": "none"})", R"({"policy": "static", "redundant": 8})",
                              R"({"policy": "hierarchical", "every": "5 ms", "slice": 2})"})
    CHECK(answers_with(balance) == moving.report.facts.tokens);
}

TEST_CASE("a simulated service whose experts move is the same whenever it is simulated") {
  const std::string json = simulated_report();
  CHECK(report_value(json + "\"x\": 0}", "eplb.decode.rebalances").value_or(0) > 1);
  CHECK(simulated_report() == json);
}

TEST_CASE("experts that move on the host are joined with simulated ones op by op") {
  CrosscheckRequest request{[] { return moving_job({}, 20); }, simulate_plainly, execute_on_host, "", {}, 1};
  const Crosscheck result = crosscheck(request);
  INFO(to_text(result));
  CHECK(result.same());
  CHECK(joined(result, OpKind::kAllToAll) > 0);
  CHECK(joined(result, OpKind::kPlaceExperts) > 0);
  CHECK(joined(result, OpKind::kSend) > 0);
}

TEST_CASE(
    "a service is carried out a second time, which alone is judged, and begins when the first has ended") {
  CrosscheckRequest request{[] { return moving_job({}, 6); }, simulate_plainly, execute_on_host, "", {}, 1};
  request.warm = true;
  const Crosscheck again = crosscheck(request);
  INFO(to_text(again));
  CHECK(again.same());
  CHECK(again.warm_up == "a pass through the schedule");
  CHECK(again.comparison.joined > 0);
  CHECK(again.comparison.makespan_a.ns > 0);
  CHECK(joined(again, OpKind::kAllToAll) > 0);
}

TEST_CASE("a placement that weighs what moving takes is refused where every op is carried out") {
  CHECK_THROWS_WITH(
      moving_job({R"(/plan/expert_balance={"policy": "greedy", "redundant": 4, "every": "20 ms"})"}),
      Catch::Contains(
          "/plan/expert_balance/policy: a placement that weighs what moving takes needs iterations"));
}

}  // namespace moebius
