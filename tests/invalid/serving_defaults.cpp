// Frameworks and number formats of a serving plan that are refused, each with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kFramework = "smoke/serve-framework.json";

}  // namespace

TEST_CASE("a framework that nobody knows is refused with the nearest name") {
  CHECK(refusal(kFramework, "", "") == "");
  check(kFramework, "/plan/framework", "vlm",
        "/plan/framework: expected one of \"none\", \"vllm\", \"vllm-v0\", \"sglang\", \"trtllm\", found "
        "\"vlm\" (did you "
        "mean "
        "\"vllm\"?)");
}

TEST_CASE("formats that a chip does not compute in or a model has no weights for are refused") {
  check(kFramework, "/plan/precision/gemm", "fp4",
        "/plan/precision/gemm: h100-sxm has no native fp4 arithmetic");
  check(kFramework, "/plan/precision/experts", "fp4",
        "/plan/precision/experts: h100-sxm has no native fp4 arithmetic");
  Document document = base(kFramework);
  set_at_pointer(document, "/model", "\"llama-3.1-8b\"");
  CHECK_THAT(
      refusal(document),
      Catch::EndsWith("/plan/precision/expert_weights: llama-3.1-8b has no experts; expected \"gemm\""));
}
