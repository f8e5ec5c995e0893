// What a pipeline's schedule needs of a training scenario.
#include "tests/invalid/refusals.h"

using namespace moebius;

TEST_CASE("a schedule is one of those that there are, slicing a name or a list") {
  check(
      kTraining,
      {{"/plan/memory_reserve", "300 GB",
        "/plan/memory_reserve: expected less than the 85.5 GB of h800-sxm, found 300 GB"},
       {"/plan/pp/schedule", "dualpip",
        R"(/plan/pp/schedule: expected one of "1f1b", "gpipe", "interleaved", "zb-h1", "zb-v", "dualpipe", )"
        R"("dualpipev", found "dualpip" (did you mean "dualpipe"?))"},
       {"/plan/pp/slicing", "uniform",
        R"(/plan/pp/slicing: expected "balanced", "even", "even-with-ends", "dynamic" or the layers of each stage, found "uniform")"},
       {"/plan/pp/slicing", "[]",
        R"(/plan/pp/slicing: expected "balanced", "even", "even-with-ends", "dynamic" or the layers of each stage, found an array)"},
       {"/plan/pp/slicing", "even", R"(/plan/pp/slicing: 61 layers do not divide over 16 stages)"},
       {"/plan/pp/slicing", "even-with-ends",
        R"(/plan/pp/slicing: 63 layers, embedding and head counted as one each, do not divide over 16 stages)"},
       {"/plan/pp/slicing", "[4, 0, 4]",
        R"(/plan/pp/slicing: expected at least 1 layer on stage 1, found 0)"},
       {"/plan/pp/slicing", "[30, 31]", R"(/plan/pp/slicing: layers of 2 stages, but there are 16)"},
       {"/plan/pp/slicing", "[4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4]",
        R"(/plan/pp/slicing: 64 layers in all, but deepseek-v3 has 61)"}});
  CHECK_THAT(refusal(kTraining, {{"/plan/pp/schedule", "interleaved"},
                                 {"/plan/pp/virtual", "2"},
                                 {"/plan/pp/slicing", "[30, 31]"}}),
             Catch::EndsWith("layers of 2 stages, but there are 32, 2 on each of 16 ranks"));
}

TEST_CASE("messages can be cut over ranks that hold the same activations") {
  check(kTraining,
        {{"/plan/pp/cut_messages", "true",
          "/plan/pp/cut_messages: expected tensor-parallel ranks that hold the same activations, found one "
          "rank"},
         {"/plan/pp/blocking_messages", "1", "/plan/pp/blocking_messages: expected true or false, found 1"}});
  CHECK_THAT(refusal(kTraining, {{"/plan/tp/attention", "2"},
                                 {"/plan/tp/sequence_parallel", "true"},
                                 {"/plan/pp/cut_messages", "true"}}),
             Catch::Contains("found sequence_parallel, which cuts them already"));
}

TEST_CASE("a schedule says what it needs of stages and microbatches") {
  CHECK(
      refusal(kTraining, {{"/plan/pp/schedule", "1f1b"}, {"/plan/pp/virtual", "2"}}) ==
      R"(s.json: --set /plan/pp/virtual: schedule "1f1b" puts one stage on a rank by itself: 2 are for "interleaved")");
  CHECK(
      refusal(kTraining, {{"/plan/pp/schedule", "zb-v"}, {"/plan/pp/virtual", "3"}}) ==
      R"(s.json: --set /plan/pp/virtual: schedule "zb-v" puts two stages on a rank by itself: 3 are for "interleaved")");
  CHECK_THAT(refusal(kTraining, {{"/plan/pp/schedule", "interleaved"}}),
             Catch::Contains(R"(schedule "interleaved" needs at least 2 stages on a rank, found 1)"));
  CHECK_THAT(refusal(kTraining, {{"/plan/pp/schedule", "interleaved"}, {"/plan/pp/virtual", "4"}}),
             Catch::Contains("the 61 layers of deepseek-v3 cannot fill 64 pipeline stages"));
  CHECK_THAT(
      refusal(kTraining, {{"/plan/pp/schedule", "interleaved"}, {"/plan/pp/virtual", "3"}}),
      Catch::Contains("schedule \"interleaved\" takes microbatches in groups of 16 pipeline ranks: 120 are "
                      "not a multiple"));
  CHECK_THAT(refusal(kTraining, {{"/plan/pp/schedule", "dualpipe"}, {"/plan/pp/degree", "1"}}),
             Catch::Contains("schedule \"dualpipe\" needs at least 2 pipeline ranks, found 1"));
  CHECK_THAT(
      refusal(kTraining, {{"/plan/pp/schedule", "dualpipe"}, {"/workload/global_batch", "3840"}}),
      Catch::Contains("schedule \"dualpipe\" needs at least 2 microbatches for each of 16 pipeline ranks, "
                      "found 30"));
  CHECK_THAT(
      refusal(kTraining, {{"/plan/pp/schedule", "dualpipe"}, {"/workload/global_batch", "4224"}}),
      Catch::Contains("schedule \"dualpipe\" enters equally many microbatches at both ends, found 33"));
}

TEST_CASE("two microbatches side by side are for 1F1B with an exchange of experts beside compute") {
  CHECK_THAT(
      refusal(kTraining, {{"/plan/pp/schedule", "gpipe"}, {"/plan/overlap/two_batch", "true"}}),
      Catch::Contains(
          R"(/plan/overlap/two_batch: two_batch is for schedules "1f1b" and "interleaved", found "gpipe")"));
  CHECK_THAT(refusal(kTraining, {{"/plan/pp/schedule", "1f1b"},
                                 {"/plan/overlap/two_batch", "true"},
                                 {"/plan/overlap/dispatch_combine", "false"}}),
             Catch::Contains("two_batch needs overlap/dispatch_combine true, found false"));
}
