// Degrees over which experts and sequences are spread are asked for wrongly.
#include "tests/invalid/refusals.h"

namespace moebius {

TEST_CASE("the degree of experts divides them and their stage") {
  check(
      kTraining,
      {
          {"/plan/tp/expert", "0", R"(/plan/tp/expert: expected an integer from 1 to 1048576, found 0)"},
          {"/plan/tp/expert", "3",
           R"(/plan/tp/expert: degree of experts 3 does not divide the 2048 columns of an expert of deepseek-v3)"},
          {"/plan/tp/expert", "4",
           R"(/plan/tp/expert: degree of experts 4 x ep 64 = 256 ranks do not divide the tp 1 x cp 1 x dp 128 = 128 ranks of a pipeline stage)"},
      });
  CHECK(refusal(kTraining, {{"/plan/tp/expert", "2"}, {"/plan/save", "there"}}) ==
        "s.json: --set /plan/tp/expert: checkpoints hold whole experts: expected 1, found 2");
  for (const char* scaling : {R"("block")", R"("tensor")", R"("micro")", R"("history")"})
    CHECK(refusal(kTraining, {{"/plan/tp/expert", "2"},
                              {"/plan/precision/dispatch", R"("bf16")"},
                              {"/plan/precision/fused_quantise", "false"},
                              {"/plan/precision/weights", R"("bf16")"},
                              {"/plan/precision/scaling", scaling}}) == "");
}

TEST_CASE("keys that are not gathered need ranks that share sequences and heads or tokens that divide") {
  check(
      kTraining,
      {
          {"/plan/context", "rings",
           R"(/plan/context: expected one of "all-gather", "ring", "ulysses", found "rings" (did you mean "ring"?))"},
          {"/plan/context", "ring",
           R"(/plan/context: ring and ulysses need a context-parallel degree above 1, found 1)"},
      });
  CHECK(refusal(kTraining,
                {{"/plan/cp", "2"}, {"/plan/context", "ring"}, {"/workload/sequence_length", "4098"}}) ==
        "s.json: --set /workload/sequence_length: a ring cuts 4098 tokens into two chunks a rank: expected a "
        "multiple of 2 x cp 2 x tp 1 = 4");
  CHECK(
      refusal(kTraining, {{"/plan/cp", "2"},
                          {"/plan/context", "ulysses"},
                          {"/model", "mixtral-8x22b"},
                          {"/plan/ep/nodes_per_token", "0"},
                          {"/plan/ep/degree", "8"},
                          {"/plan/cp", "16"},
                          {"/plan/pp/schedule", "1f1b"}}) ==
      R"(s.json: --set /plan/context: "ulysses" cuts heads over tp 1 x cp 16 = 16 ranks, which do not divide the 8 key-value heads of mixtral-8x22b)");
}

// A rank of two holds 2048 of 4096 tokens, and chunks of 2048 or 1024 end with them.
TEST_CASE("chunks of attention end with the rows of a context rank") {
  const auto of_chunk = [](const std::string& tokens, const char* pointer, const char* json) {
    const std::string model = R"({"base": "mixtral-8x22b", "attention_chunk": )" + tokens + "}";
    return refusal(kTraining, {{"/model", model.c_str()},
                               {"/plan/ep/nodes_per_token", "0"},
                               {"/plan/ep/degree", "8"},
                               {pointer, json}});
  };
  CHECK(
      of_chunk("3000", "/plan/cp", "2") ==
      "s.json: --set /plan/cp: mixtral-8x22b (changed) attends in chunks of 3000 tokens, which ranks do not "
      "share: expected /workload/sequence_length 4096 / cp 2 = 2048 to be a multiple of it");
  for (const char* tokens : {"1024", "2048", "4096"}) CHECK(of_chunk(tokens, "/plan/cp", "2") == "");
  CHECK(of_chunk("3000", "/plan/attention", "\"unfused\"") ==
        "s.json: --set /plan/attention: \"unfused\" attention sees chunks of equal lengths: 4096 tokens are "
        "not a multiple of the 3000 of mixtral-8x22b (changed)");
}

TEST_CASE("as many nodes as a token may use hold the experts that it uses") {
  CHECK(
      refusal(kTraining, {{"/model", "mixtral-8x22b"},
                          {"/plan/ep/degree", "8"},
                          {"/plan/tp/expert", "8"},
                          {"/plan/ep/nodes_per_token", "1"}}) ==
      "s.json: --set /plan/ep/nodes_per_token: 1 of 8 groups of 1 experts do not hold the 2 that a token of "
      "mixtral-8x22b uses");
}

TEST_CASE("layers that share keys and values are not trained") {
  check(
      kTraining, "/model", R"({"base": "qwen3-30b-a3b", "kv_share": 2})",
      "/model: 2 consecutive layers of qwen3-30b-a3b (changed) share keys and values, which are not trained "
      "so far");
}

}  // namespace moebius
