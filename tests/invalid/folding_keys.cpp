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

}  // namespace moebius
