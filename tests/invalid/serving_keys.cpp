// What a serving scenario may not say, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kLarge = "study/deepseek-v3-serve-16-h200.json";

}  // namespace

TEST_CASE("the shipped serving scenarios are accepted as they are") {
  CHECK(refusal(kLarge, "", "") == "");
  CHECK(refusal(kSmall, "", "") == "");
  CHECK(refusal(kApart, "", "") == "");
}

TEST_CASE("degrees of serving that do not fit are refused with the numbers") {
  check(kLarge, "/plan/decode/attention/dp", "32",
        "/plan/decode/attention: dp 32 x tp 1 = 32 ranks do not fit on the 16 devices of pool \"serve\"");
  check(kLarge, "/plan/decode/ep/degree", "3",
        "/plan/decode/ep/degree: expert-parallel degree 3 does not divide the dp 16 x tp 1 = 16 ranks");
  CHECK(refusal(kLarge, "/plan/decode/attention/dp", "0") == "");  // all devices
  const std::string divided =
      refusal(kLarge, {{"/model", R"({"base": "deepseek-v3", "experts": {"routed": 240}})"},
                       {"/plan/decode/attention", R"({"dp": 3, "tp": 4})"},
                       {"/plan/decode/ep/degree", "6"}});
  CHECK_THAT(divided,
             Catch::EndsWith("/plan/decode/ep/degree: expert-parallel degree 6 is neither a part nor "
                             "a multiple of tp 4: the ranks of a replica share experts among "
                             "themselves or whole with those of others"));
}

TEST_CASE("ranks that share each expert by columns are whole replicas that gather their tokens") {
  const auto columns = [](const char* experts, const char* attention = R"({"tp": 1})",
                          const char* pointer = "/plan/phase", const char* value = "decode") {
    return refusal(kLarge, {{"/plan/phase", "decode"},
                            {"/plan/decode/attention", attention},
                            {"/plan/decode/ep", experts},
                            {pointer, value}});
  };
  CHECK(columns(R"({"degree": 1, "tp": 8})") == "");
  CHECK_THAT(columns(R"({"degree": 2, "tp": 2})", R"({"tp": 8})"),
             Catch::EndsWith("/plan/decode: ep/tp 2: of the 8 ranks of a replica that share experts by 2, as "
                             "many have columns of each as are left; expected 4"));
  CHECK_THAT(
      columns(R"({"degree": 3, "tp": 2})", R"({"tp": 4})"),
      Catch::EndsWith("/plan/decode: ep 3 x tp 2 = 6 ranks share experts, which whole replicas of tp 4 "
                      "are not: expected a multiple of 4"));
  CHECK_THAT(columns(R"({"degree": 4, "tp": 8})"),
             Catch::EndsWith("/plan/decode: ep 4 x tp 8 spreads experts over 32 ranks, of which dp 16 x tp 1 "
                             "has 16: expected an ep degree of at most 2"));
  CHECK_THAT(columns(R"({"degree": 1, "tp": 8, "dispatch": "deepep"})"),
             Catch::EndsWith("/plan/decode: ep/dispatch \"deepep\" takes tokens to whole experts, and with "
                             "ep/tp 8 ranks gather them: expected \"all-gather\" or \"auto\""));
  CHECK_THAT(columns(R"({"degree": 1, "tp": 8})", R"({"tp": 1})", "/plan/decode/two_batch_overlap", "true"),
             Catch::EndsWith("/plan/decode: two_batch_overlap with ep/tp 8, whose ranks gather all tokens in "
                             "line: expected false, or ep/tp 1"));
  CHECK_THAT(columns(R"({"degree": 1, "tp": 8})", R"({"tp": 1})", "/model",
                     R"({"base": "deepseek-v3", "experts": {"width": 2044}})"),
             Catch::EndsWith("/plan/decode/ep/tp: degree 8 does not divide the 2044 columns of an expert of "
                             "deepseek-v3 (changed)"));
}

TEST_CASE("a service whose weights do not fit cannot be told to run all the same") {
  CHECK(refusal(kSmall, "/plan/memory", "report") == "");
  check(kApart, "/plan/memory", "report",
        "/plan/memory: a service runs as many sequences as its cache has room for, so that weights have to "
        "fit: expected \"enforce\"");
}

TEST_CASE("what one pool cannot do or is not there yet is refused by name") {
  check(kLarge, "/plan/prefill/attention/dp", "8",
        "/plan/prefill/attention: dp 8 differs from decode's 16: one pool does both");
  check(kLarge, "/plan/separation/prefill_decode", "true",
        "/plan/decode: prefill and decode are apart, but on one pool: expected two");
  check(kLarge, "/plan/separation/attention_ffn", "true",
        "/plan/separation/attention_ffn: expected the pool of the experts in /plan/decode/experts or "
        "/plan/prefill/experts, found none");
  check(kLarge, "/plan/router", "nearest",
        "/plan/router: expected one of \"round-robin\", \"least-requests\", \"least-tokens\", \"kv-aware\", "
        "\"sla-aware\", found \"nearest\"");
}

TEST_CASE("a whole service says what does not fit together") {
  check(kApart, "/plan/decode/pool", "decoed",
        "/plan/decode: expected a name in /cluster/pools, found \"decoed\" (did you mean \"decode\"?)");
  check(kApart, "/plan/prefill/attention/dp", "9",
        "/plan/prefill: dp 9 x tp 1 ranks do not fit on the 8 devices of pool \"prefill\"");
  check(kApart, "/plan/decode/ep/degree", "3",
        "/plan/decode: 3 replicas share experts by 3: that does not divide dp 8");
  check(kApart, "/plan/cache/block_tokens", "48",
        "/plan/cache/block_tokens: pages of 48 tokens do not divide the traffic's blocks of 512");
  check(kApart, "/workload/trace", R"({"path": ""})", "/workload/trace/path: expected a file, found \"\"");
  const char* const beside =
      "/workload/trace/requests: \"requests\" counts only with a generator in place of \"path\"";
  check(kApart, "/workload/trace", R"({"path": "a.jsonl", "requests": 50, "rate": 99})", beside);
  CHECK_THAT(refusal(kApart, {{"/workload/trace/path", "a.jsonl"}, {"/workload/trace/requests", "50"}}),
             Catch::EndsWith(beside));
  // A path on the command line stands in for what the file says.
  const std::string file = MOEBIUS_SOURCE_DIR "/README.md";  // its rows are read by the run
  CHECK(refusal(kApart, "/workload/trace/path", file) == "");
  CHECK(refusal(kApart, "/workload/trace", R"({"path": ")" + file + R"(", "block_tokens": 512})") == "");
  CHECK(refusal(kApart, "/workload/trace/path", "a.jsonl") ==
        "s.json: --set /workload/trace/path: expected a trace file, found none: a.jsonl");
  check(kApart, "/workload/trace/input", "100",
        "/workload/trace/input: \"input\" counts only with generator \"batch\"");
}

TEST_CASE("each phase of serving names its own dispatch kernel") {
  for (const std::string phase : {"decode", "prefill"}) {
    const std::string key = "/plan/" + phase + "/ep/dispatch";
    check(kLarge, key.c_str(), "nccl",
          key +
              ": expected one of \"auto\", \"deepep\", \"deepep-low-latency\", \"all-to-all\", "
              "\"all-gather\", found \"nccl\"");
    CHECK(refusal(kLarge, key.c_str(), "deepep") == "");
  }
}

TEST_CASE("what one pool does alone needs no other pool and no transfer") {
  check(kSmall, "/plan/prefill/pool", "xx",
        R"(/plan/prefill/pool: pool "xx" differs from decode's "serve": one pool does both)");
  CHECK(refusal(kSmall, "/plan/prefill/pool", "serve") == "");
  check(kSmall, "/plan/transfer", R"({"call": "1 us"})",
        R"(/plan/transfer/call: "call" counts only with prefill and decode on pools of their own)");
}

TEST_CASE("promises are made for a phase that is served alone, too") {
  const char* const kPromise = R"([{"class": "chat", "ttft": "1 s"}, {"class": "batch"}])";
  for (const char* phase : {"prefill", "decode"})
    CHECK(refusal(kSmall, {{"/plan/phase", phase}, {"/sla", kPromise}}) == "");
}

TEST_CASE("lengths of requests are whole and in order") {
  const std::string expected =
      "expected a number of tokens from 1 to 16777216, {\"uniform\": [LEAST, MOST]} or {\"lognormal\": "
      "{\"median\": TOKENS, \"sigma\": "
      "SIGMA, \"most\": TOKENS}}, found ";
  check(kSmall, "/workload/trace/input", "0", "/workload/trace/input: " + expected + "0");
  check(kSmall, "/workload/trace/input", "2.5", "/workload/trace/input: " + expected + "2.5");
  check(kSmall, "/workload/trace/output", R"({"uniform": [9, 3]})",
        "/workload/trace/output: " + expected + "an object");
  check(kSmall, "/workload/trace/output", R"({"uniform": [9]})",
        "/workload/trace/output: " + expected + "an object");
}

TEST_CASE("times between requests count where they do not come at once") {
  check(kSmall, "/workload/rate_scale", "2",
        R"(/workload/rate_scale: "rate_scale" counts only with requests that come by and by)");
  check(kSmall, "/workload/trace/spread_arrivals", "true",
        R"(/workload/trace/spread_arrivals: "spread_arrivals" counts only with another generator than "batch")");
}

TEST_CASE("a trace on the command line stands in for a batch") {
  check(kSmall, "/workload/trace/path", "none.jsonl",
        "/workload/trace/path: expected a trace file, found none: none.jsonl");
}

TEST_CASE("one rank stands for all only when all do the same") {
  check(
      kSmall, "/plan/fold", "true",
      "/plan/fold: one rank can stand for all only when all have the same requests: 12 requests of different "
      "lengths on dp 2; expected false");
  const std::string unlike = refusal(kLarge, {{"/plan/fold", "true"}, {"/workload/trace/requests", "1025"}});
  CHECK_THAT(unlike, Catch::EndsWith("/plan/fold: one rank can stand for all only when all have the same "
                                     "requests: 1025 requests of one length on dp 16; expected false"));
  CHECK(refusal(kLarge, {{"/workload/trace/requests", "1025"}}) == "");  // left out, it is what fits
}

TEST_CASE("layers that share keys and values are refused with their number") {
  check(kLarge, "/model", R"({"base": "qwen3-235b-a22b", "kv_share": 2})",
        "/model: 2 consecutive layers of qwen3-235b-a22b "
        "(changed) share keys and values, which are not served so far");
}

TEST_CASE("requests longer than a learned table of positions are refused with both lengths") {
  check(kSmall, "/model/learned_positions", "40",  // prompts of up to 30 tokens, answers of up to 12
        "/workload/trace: requests of up to 42 tokens are longer than the 40 positions that deepseek-v3 "
        "(changed) has learned");
  CHECK(refusal(kSmall, "/model/learned_positions", "41") == "");
}
