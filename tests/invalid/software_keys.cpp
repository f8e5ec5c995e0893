// What software before fused kernels did is asked for wrongly, and measured figures are told wrongly.
#include "tests/invalid/refusals.h"

namespace moebius {

TEST_CASE("kernels of attention and accumulation are names and dropout is a share") {
  check(
      kTraining,
      {
          {"/plan/attention", "fused",
           R"(/plan/attention: expected one of "flash", "unfused", found "fused" (did you mean "unfused"?))"},
          {"/plan/precision/accumulation", "apart",
           R"(/plan/precision/accumulation: expected one of "fused", "separate", found "apart")"},
          {"/plan/loss", "apart", R"(/plan/loss: expected one of "fused", "separate", found "apart")"},
          {"/plan/norms", "apart", R"(/plan/norms: expected one of "fused", "separate", found "apart")"},
          {"/plan/optimizer", "apart",
           R"(/plan/optimizer: expected one of "fused", "separate", found "apart")"},
          {"/plan/ep/kernels", "apart",
           R"(/plan/ep/kernels: expected one of "fused", "separate", found "apart")"},
          {"/plan/ep/products", "single",
           R"(/plan/ep/products: expected one of "grouped", "each", found "single")"},
          {"/plan/overlap/tensor_sms", "-1",
           R"(/plan/overlap/tensor_sms: expected an integer from 0 to 4096, found -1)"},
          {"/workload/dropout", "1", R"(/workload/dropout: expected a number from 0 to 0.99, found 1)"},
          {"/plan/recompute/whole_layers", "true",
           R"(/plan/recompute/whole_layers: whole layers are for policy "full" only)"},
      });
}

TEST_CASE("unfused attention sees whole sequences") {
  CHECK(
      refusal(kTraining, {{"/plan/cp", "2"}, {"/plan/attention", "unfused"}}) ==
      R"(s.json: --set /plan/attention: "unfused" attention sees whole sequences: expected /plan/cp 1, found 2)");
}

TEST_CASE("pieces beside their products hold no cores") {
  Document document = base("smoke/train-tensor.json");
  set_at_pointer(document, "/plan/tp/overlap", "true");
  set_at_pointer(document, "/plan/overlap/tensor_sms", "24");
  CHECK(refusal(document) ==
        "s.json: --set /plan/overlap/tensor_sms: pieces of /plan/tp/overlap travel by copy engines: expected "
        "0 cores "
        "with it, found 24");
}

TEST_CASE("a known difference has its reason") {
  CHECK(refusal(
            kTraining,
            {{"/expect", "[]"},
             {"/expect/-", R"({"metric": "mfu", "value": 1, "source": "none", "known_difference": 0.1})"}}) ==
        "s.json: --set /expect/0/known_difference: expected a reason in `known_miss`, found none");
}

}  // namespace moebius
