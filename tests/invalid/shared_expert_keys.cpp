// Where shared experts cannot be computed, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kDecode = "validate/serving-cloudmatrix/decode-4096-8.json";

void check(const char* pointer, const char* json, const std::string& sentence) {
  INFO(pointer << " = " << json);
  CHECK_THAT(refusal(kDecode, pointer, json), Catch::EndsWith(sentence));
}

}  // namespace

TEST_CASE("ranks that do not divide the columns of the shared experts cannot train them") {
  const char* const odd = R"({"base": "deepseek-v3", "experts": {"shared_width": 2047}})";
  const char* const cut = R"({"attention": 2, "sequence_parallel": true})";
  CHECK_THAT(refusal(kTraining, {{"/model", odd}, {"/plan/tp", cut}, {"/plan/dp/degree", "64"}}),
             Catch::EndsWith("/plan/tp/attention: tensor-parallel degree 2 does not divide the 2047 columns "
                             "of the shared experts of deepseek-v3 (changed)"));
}

TEST_CASE("shared experts that cannot stand among the routed ones are refused") {
  REQUIRE(refusal(kDecode, "", "") == "");
  check("/plan/decode/ep/shared_experts", "route",
        R"(/plan/decode/ep/shared_experts: expected one of "separate", "fused", "routed", found "route" )"
        R"((did you mean "routed"?))");
  check(
      "/model", R"({"base": "deepseek-r1", "experts": {"shared": 0, "shared_width": 0}})",
      R"(/plan/decode: shared_experts "routed": deepseek-v3 (changed) has no shared experts; expected "separate")");
  check("/model", R"({"base": "deepseek-r1", "experts": {"shared_width": 4096}})",
        R"(/plan/decode: shared_experts "routed": one product holds experts of one width, and the 1 of )"
        R"(deepseek-v3 (changed) are 4096 wide in all, routed ones 2048 each; expected "separate")");
  check(
      "/model", R"({"base": "deepseek-r1", "experts": {"shared_gate": true}})",
      R"(/plan/decode: shared_experts "routed": those of deepseek-v3 (changed) count times a gate of their )"
      R"(own, which grouped products do not apply; expected "separate")");
  check("/model",
        R"({"base": "deepseek-r1", "experts": {"shared": 0, "shared_width": 0, "shared_gate": true}})",
        "/model/experts/shared_gate: a gate of shared experts needs at least 1 shared, found none");
  check("/plan/expert_balance", R"({"policy": "none"})",
        "/plan/decode/ep/degree: degree 320 does not divide the 257 experts, shared ones among them, of "
        "deepseek-v3");
  check(
      "/plan/decode/speculative", R"({"mtp": 1, "model": "qwen3-30b-a3b"})",
      R"(/plan/decode: shared_experts "routed": qwen3-30b-a3b guesses with experts of its own; expected "separate")");
  check("/plan/steps", "full",
        R"(/plan/decode/ep/shared_experts: "routed" is not carried out op by op: expected "separate", or )"
        R"(/plan/steps "surface")");
}

TEST_CASE("shared experts with a gate are not fused") {
  CHECK_THAT(refusal(kSmall, {{"/model", R"("qwen3-next-80b-a3b")"},
                              {"/plan/steps", R"("surface")"},
                              {"/plan/decode/ep/shared_experts", R"("fused")"}}),
             Catch::EndsWith(
                 R"(/plan/decode: shared_experts "fused": those of qwen3-next-80b-a3b count times a gate )"
                 R"(of their own, which grouped products do not apply; expected "separate")"));
}

TEST_CASE("one pool computes shared experts one way") {
  CHECK_THAT(
      refusal("smoke/serve-small.json", "/plan/prefill", R"({"ep": {"shared_experts": "fused"}})"),
      Catch::EndsWith(R"(shared_experts "fused" differs from decode's "separate": one pool does both)"));
}
