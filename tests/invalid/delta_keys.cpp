// What a scenario may not ask of a model with delta networks, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

std::string of_delta_networks(const std::string& file,
                              std::vector<std::pair<const char*, const char*>> changes) {
  changes.insert(changes.begin(), {"/model", R"("qwen3-next-80b-a3b")"});
  return refusal(file, changes);
}

}  // namespace

TEST_CASE("models with delta networks are served") {
  CHECK(of_delta_networks(kSmall, {}) == "");
  CHECK(of_delta_networks(kApart, {{"/plan/cache/prefix", "false"}}) == "");
}

TEST_CASE("models with delta networks are not trained") {
  CHECK_THAT(
      of_delta_networks(kTraining, {}),
      Catch::EndsWith(
          "/model: qwen3-next-80b-a3b has gated delta networks, which are served but not trained so far"));
  CHECK_THAT(
      refusal(kTraining, "/model", R"({"base": "qwen3-30b-a3b", "output_gate": true})"),
      Catch::EndsWith(
          "/model: qwen3-30b-a3b (changed) has output gates, which are served but not trained so far"));
}

TEST_CASE("states of sequences are neither shared nor swapped nor cut") {
  CHECK_THAT(
      of_delta_networks(kApart, {}),
      Catch::EndsWith(
          "/plan/cache/prefix: qwen3-next-80b-a3b keeps states of sequences, which no block holds, so that "
          "prefixes are not shared so far: expected false"));
  CHECK_THAT(
      of_delta_networks(kApart,
                        {{"/plan/cache/prefix", "false"}, {"/plan/scheduler/preemption", "\"swap\""}}),
      Catch::EndsWith(
          "/plan/scheduler/preemption: qwen3-next-80b-a3b keeps states of sequences, which do not go to the "
          "host's memory so far: expected \"recompute\""));
  CHECK_THAT(of_delta_networks(kApart, {{"/plan/cache/prefix", "false"},
                                        {"/plan/prefill/attention", R"({"dp": 4, "tp": 1, "cp": 2})"}}),
             Catch::EndsWith("/plan/prefill: cp 2 cuts prompts, whose states of qwen3-next-80b-a3b follow "
                             "from each other: expected cp 1"));
}

TEST_CASE("ranks of a replica have whole key heads of delta networks") {
  CHECK_THAT(
      refusal(kSmall, {{"/model", R"({"base": "qwen3-next-80b-a3b", "delta": {"key_heads": 1}})"},
                       {"/plan/decode/attention", R"({"dp": 1, "tp": 2})"},
                       {"/plan/decode/ep/degree", "1"}}),
      Catch::EndsWith(
          "/plan/decode/attention/tp: degree 2 does not divide the 1 key heads of the delta networks of "
          "qwen3-next-80b-a3b (changed)"));
}

TEST_CASE("a delta network says how it is built") {
  CHECK_THAT(refusal(kSmall, "/model", R"({"base": "qwen3-30b-a3b", "delta": {"key_heads": 2}})"),
             Catch::EndsWith("/model/delta: expected key \"value_heads\", found none"));
}
