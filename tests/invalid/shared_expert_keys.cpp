// Where shared experts cannot be computed, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kDecode = "validate/serving-cloudmatrix/decode-4096-8.json";

}  // namespace

TEST_CASE("shared experts that cannot stand among the routed ones are refused") {
  check(
      kDecode,
      {
          {"/plan/decode/ep/shared_experts", "route",
           R"(/plan/decode/ep/shared_experts: expected one of "separate", "fused", "routed", found "route" )"
           R"((did you mean "routed"?))"},
          {"/model", "qwen3-30b-a3b",
           R"(/plan/decode: shared_experts "routed": qwen3-30b-a3b has no shared experts; expected "separate")"},
          {"/plan/expert_balance", R"({"policy": "none"})",
           "/plan/decode/ep/degree: degree 320 does not divide the 257 experts, shared ones among them, of "
           "deepseek-r1"},
          {"/plan/steps", "full",
           R"(/plan/decode/ep/shared_experts: "routed" is not carried out op by op: expected "separate", or )"
           R"(/plan/steps "surface")"},
          {"/plan/decode/speculative", R"({"mtp": 1, "draft_model": "qwen3-8b"})",
           R"(/plan/decode: shared_experts "routed": a draft model has experts of its own; expected "separate")"},
      });
}
