// What a scenario may not say of parts that stand apart, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kExperts = "smoke/serve-afd.json";
const char* const kEncoder = "smoke/serve-encoder.json";

}  // namespace

TEST_CASE("the shipped scenarios of parts that stand apart are accepted as they are") {
  CHECK(refusal(kExperts, "", "") == "");
  CHECK(refusal(kEncoder, "", "") == "");
}

TEST_CASE("experts that stand apart need devices of their own that hold them") {
  check(
      kExperts, "/plan/separation/attention_ffn", "false",
      "/plan/decode/experts: experts have a pool of their own only with /plan/separation/attention_ffn true");
  check(kExperts, "/plan/expert_balance", R"({"policy": "global"})",
        "/plan/expert_balance/policy: experts on a pool of their own are not placed anew so far: expected "
        "\"none\" or \"static\"");
  check(kExperts, "/plan/decode/ep", R"({"dispatch": "all-gather"})",
        "/plan/decode/experts: ranks of attention and of experts do not gather each other's tokens: dispatch "
        "\"all-gather\" needs experts beside attention");
  check(kExperts, "/plan/decode/experts/pool", "expert",
        "/plan/decode: expected a name in /cluster/pools, found \"expert\" (did you mean \"experts\"?)");
  check(kExperts, "/plan/decode/experts/pool", "attention",
        "/plan/decode/experts: pool \"attention\" does something else already: what stands apart has a pool "
        "of its "
        "own");
  check(kExperts, "/plan/decode/experts/ep", "9",
        "/plan/decode: 9 ranks of experts do not fit on the 8 devices of pool \"experts\"");
  check(kExperts, "/plan/decode/experts/ep", "3",
        "/plan/decode/ep/degree: degree 3 does not divide the 128 experts of qwen3-30b-a3b");
  check(kExperts, "/plan/decode/attention", "{\"pool\": \"attention\", \"dp\": 4, \"tp\": 2}",
        "/plan/decode: experts stand apart from attention of one rank so far, found tp 2");
  check(kExperts, "/plan/prefill/experts", "{\"pool\": \"experts\"}",
        "/plan/prefill/experts: one instance does both phases: where its experts stand is said in "
        "/plan/decode/experts");
  check("smoke/serve-apart.json", "/plan/decode/microbatches", "2",
        "/plan/decode/microbatches: \"microbatches\" counts only with a pool in \"experts\"");
}

TEST_CASE("an encoder that stands apart is one that is named, on a pool that does nothing else") {
  check(kEncoder, "/plan/encoder/model", "none",
        "/plan/separation/encoder: expected an encoder in /plan/encoder/model, found none");
  check(kEncoder, "/plan/encoder/pool", "serve",
        "/plan/encoder: pool \"serve\" does something else already: what stands apart has a pool of its own");
  check(kEncoder, "/plan/encoder/dp", "100",
        "/plan/encoder: dp 100 x tp 1 ranks do not fit on the 8 devices of pool \"encoder\"");
  check(kEncoder, "/plan/encoder/patches", "64",
        "/plan/encoder/patches: expected 4800, those of the traffic's image_tokens, found 64");
  check(kEncoder, "/plan/separation/encoder", "false",
        "/plan/encoder: pool and dp count only with /plan/separation/encoder true");
  check(kEncoder, "/plan/phase", "decode",
        "/plan/encoder: images are encoded before their prompts, and /plan/phase \"decode\" computes none");
}

TEST_CASE("prompts are cut over ranks with whole heads that compute prompts alone") {
  const char* const apart = "smoke/serve-apart.json";
  check(apart, "/plan/decode/attention", R"({"dp": 1, "cp": 8})",
        "/plan/decode: cp 8 cuts prompts, but this pool decodes: expected prefill on a pool of its own");
  check(apart, "/plan/prefill/attention", R"({"dp": 1, "tp": 2, "cp": 4})",
        "/plan/prefill: cp 4 with tp 2: prompts are cut over ranks with whole heads, expected tp 1");
  check(apart, "/plan/prefill/attention", R"({"dp": 2, "cp": 8})",
        "/plan/prefill: dp 2 x cp 8 x tp 1 ranks do not fit on the 8 devices of pool \"prefill\"");
  check(apart, "/plan/prefill", R"({"pool": "prefill", "attention": {"cp": 2}, "ep": {"degree": 3}})",
        "/plan/prefill: experts over 3 ranks, prompts over 2: neither divides the other");
  check(apart, "/plan/prefill/attention", R"({"dp": 8, "attend_by": "heads"})",
        "/plan/prefill: attend_by \"heads\" is of ranks that cut prompts: expected cp above 1, found 1");
  check(
      apart, "/plan/prefill/attention", R"({"dp": 1, "cp": 8, "attend_by": "heads"})",
      "/plan/prefill: attend_by \"heads\" gathers latents, and qwen3-30b-a3b has none: expected \"tokens\"");
  check("validate/serving-cloudmatrix/prefill-perfect.json", "/plan/prefill/attention/cp", "3",
        "/plan/prefill: attend_by \"heads\": cp 3 does not divide the 128 heads of deepseek-v3");
  check("validate/serving-cloudmatrix/prefill-perfect.json", "/model", R"("deepseek-v3.2")",
        "/plan/prefill: cp 32 cuts prompts, whose keys deepseek-v3.2 chooses by an indexer: expected cp 1");
  check("smoke/serve-small.json", "/plan/decode/attention/cp", "2",
        "cuts prompts, but this pool decodes: expected prefill on a pool of its own");
}
