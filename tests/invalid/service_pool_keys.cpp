// What pools, classes and admission of a service may not say, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

}  // namespace

namespace {

const char* const kClasses = "smoke/serve-classes.json";

}  // namespace

TEST_CASE("the shipped service of several pools is accepted as it is") {
  CHECK(refusal(kClasses, "", "") == "");
}

TEST_CASE("pools of a service that do not fit together are refused") {
  check(kClasses, "/plan/pools/1/pool", "edge", "/plan/pools/1: pool \"edge\" stands twice");
  check(kClasses, "/plan/pools/1/role", "prefill",
        "/plan/pools: a pool only takes in prompts, but none only decodes");
  check(kClasses, "/plan/pools/1/role", "decode",
        "/plan/pools: a pool only decodes, but none only takes in prompts");
  check(kClasses, "/plan/pools/0/attention/dp", "16",
        "/plan/pools/0: dp 16 x tp 2 ranks do not fit on the 8 devices of pool \"edge\"");
  check(kClasses, "/plan/decode", R"({"max_batch": 4})",
        "/plan/decode: \"decode\" counts only without pools");
  check(kClasses, "/plan/scheduler/batching", "mixed",
        "/plan/scheduler/batching: \"batching\" counts only with one pool: each of `pools` has its own");
  check(kClasses, "/plan/scheduler/chunked", "true",
        "/plan/scheduler/chunked: \"chunked\" counts only with one pool: each of `pools` has its own");
  check(kClasses, "/plan/pools/0/wan/bandwidth", "fast",
        "expected a byte rate such as \"400 Gb/s\" above 0, found \"fast\"");
}

TEST_CASE("classes of requests that cannot be served are refused") {
  check(kClasses, "/sla/1/pools", R"(["clowd"])",
        "/sla/1: expected names of the plan's pools, found \"clowd\" (did you mean \"cloud\"?)");
  check(kClasses, "/sla/1/pools", R"([])", "/sla/1/pools: expected an array of names of pools");
  check(kClasses, "/sla/1/class", "urgent", "/sla/1: class \"urgent\" stands twice");
  check(kClasses, "/sla", R"([{"class": "short", "longest_input": 100}])",
        "/sla: prompts of any length need a class: expected one with a share and without \"longest_input\"");
}

TEST_CASE("admission and steps are refused where they count for nothing") {
  check(kClasses, "/plan/admission/most_waiting", "8",
        "/plan/admission/most_waiting: \"most_waiting\" counts only with policy \"queue-limit\"");
  check(
      kClasses, "/plan/admission/policy", "lottery",
      "/plan/admission/policy: expected one of \"none\", \"queue-limit\", \"predicted\", found \"lottery\"");
  CHECK_THAT(refusal("smoke/serve-small.json", "/plan/admission", R"({"policy": "queue-limit"})"),
             Catch::Equals(""));
}
