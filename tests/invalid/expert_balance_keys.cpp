// What a service may not say of its experts, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kLoop = "study/serve-eplb-loop.json";

}  // namespace

TEST_CASE("keys of experts that count for nothing are refused") {
  check(kApart, "/plan/expert_balance", R"({"redundant": 8})",
        R"(/plan/expert_balance/redundant: "redundant" counts only with a policy other than "none")");
  check(kApart, "/plan/expert_balance", R"({"policy": "static", "every": "1 min"})",
        R"(/plan/expert_balance/every: "every" counts only with a policy that places again and again)");
  check(kApart, "/workload/experts", R"({"drift": "30 min"})",
        R"(/workload/experts/drift: "drift" counts only with popularity "zipf" or "dirichlet")");
  check(kApart, "/workload/experts", R"({"popularity": {"zipf": 0.5}, "step": "1 min"})",
        R"(/workload/experts/step: "step" counts only with popularity "recorded")");
}

TEST_CASE("policies and courses that cannot be are refused with what is expected") {
  check(
      kApart, "/plan/expert_balance", R"({"policy": "hierarchic"})",
      R"(/plan/expert_balance/policy: expected one of "none", "static", "hierarchical", "global", "greedy", )"
      R"(found "hierarchic" (did you mean "hierarchical"?))");
  check(kApart, "/plan", R"({
        "prefill": {"pool": "prefill"}, "decode": {"pool": "decode"}, "separation": {"prefill_decode": true},
        "expert_balance": {"policy": "static"}})",
        R"(/plan/expert_balance/policy: experts that all stand on one rank cannot be placed: expected an )"
        R"(expert-parallel degree above 1 in one phase, or policy "none")");
  check(
      kSmall, "/plan/expert_balance", R"({"policy": "static"})",
      R"(/plan/expert_balance/policy: experts of requests that are there at once are placed only where steps are )"
      R"("surface", found steps "full"; )"
      R"(expected "none")");
  check(kLoop, "/plan/expert_balance/every", R"("0 s")",
        "/plan/expert_balance/every: expected more than 0 s, found 0 s");
  check(kLoop, "/workload/experts/drift", R"("10 s")",
        "/workload/experts/drift: expected 0 or at least 60 s, found 10 s");
  check(kLoop, "/workload/experts/domains",
        R"([{"at": "10 min", "domain": 1}, {"at": "5 min", "domain": 0}])",
        "/workload/experts/domains/1/at: expected later than 10 min, found 5 min");
}
