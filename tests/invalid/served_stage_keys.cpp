// What a scenario may not say of stages that the layers of a served model stand on.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kStages = "smoke/serve-stages.json";

}  // namespace

TEST_CASE("the shipped scenario of stages is accepted as it is") {
  CHECK(refusal(kStages, "", "") == "");
}

TEST_CASE("stages need devices and layers, and are timed") {
  check(kStages, "/plan/decode/pp", "4",
        "/plan/decode: pp 4 x dp 1 x tp 8 ranks do not fit on the 16 devices of pool \"servers\"");
  check(kStages, "/plan/decode/pp", "1025",
        "/plan/decode/pp: expected an integer from 0 to 1024, found 1025");
  check(kStages, "/plan/steps", "full",
        "/plan/decode/pp: a pipeline of stages is simulated with steps \"surface\" only, found \"full\"");
  check(kStages, "/plan/prefill/pp", "1",
        "/plan/prefill/pp: pp 1 differs from decode's 2: one pool does both");
  CHECK_THAT(refusal(kStages, {{"/plan/decode/attention/tp", "1"},
                               {"/model", "{\"base\": \"qwen3-235b-a22b\", \"layers\": 8}"},
                               {"/plan/decode/pp", "16"}}),
             Catch::Contains("16 stages for the 8 layers of"));
}

TEST_CASE("what stages do not go with is refused by name") {
  check(
      kStages, "/plan/decode/speculative", R"({"mtp": 1, "acceptance": 0.8, "model": "qwen3-8b"})",
      "/plan/decode/pp: several stages with guesses, which the last stage would make for the first: expected "
      "1, or mtp 0");
  CHECK_THAT(
      refusal(kStages, {{"/plan/cache/prefix", "true"}, {"/plan/cache/dram", R"({"capacity": "100 GB"})"}}),
      Catch::EndsWith("/plan/decode/pp: several stages with tiers below device memory, which hold blocks of "
                      "all layers: expected 1"));
  check(kStages, "/plan/encoder", R"({"model": "qwen2.5-vl-vit"})",
        "/plan/decode/pp: several stages with an encoder on the same devices: expected 1, or "
        "separation/encoder "
        "true");
}
