// What a scenario may not ask of a model with delta networks, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

std::string of_delta_networks(const std::string& file, std::vector<std::pair<const char*, const char*>> changes) {
  changes.insert(changes.begin(), {"/model", R"("qwen3-next-80b-a3b")"});
  return refusal(file, changes);
}

bool ends_so(const std::string& text, std::string_view end) {
  INFO(text);
  return text.ends_with(end);
}

}  // namespace

TEST_CASE("models with delta networks are served") {
  CHECK(of_delta_networks(kSmall, {}) == "");
  CHECK(of_delta_networks(kApart, {{"/plan/cache/prefix", "false"}}) == "");
}

TEST_CASE("models with delta networks are not trained") {
  CHECK(ends_so(of_delta_networks(kTraining, {}),
             "/model: qwen3-next-80b-a3b has gated delta networks, which are served but not trained so far"));
  CHECK(ends_so(refusal(kTraining, "/model", R"({"base": "qwen3-30b-a3b", "output_gate": true})"),
             "/model: qwen3-30b-a3b (changed) has output gates or heads that turn in part, which are served but "
             "not trained so far"));
}

TEST_CASE("states of sequences are neither shared nor swapped nor cut") {
  CHECK(ends_so(of_delta_networks(kApart, {}),
             "/plan/cache/prefix: qwen3-next-80b-a3b keeps states of sequences, which no block holds, so that "
             "prefixes are not shared so far: expected false"));
  CHECK(ends_so(of_delta_networks(kApart, {{"/plan/cache/prefix", "false"}, {"/plan/scheduler/preemption", "\"swap\""}}),
             "/plan/scheduler/preemption: qwen3-next-80b-a3b keeps states of sequences, which do not go to the "
             "host's memory so far: expected \"recompute\""));
  CHECK(ends_so(of_delta_networks(kApart, {{"/plan/cache/prefix", "false"},
                              {"/plan/prefill/attention", R"({"dp": 8, "tp": 1, "cp": 2})"}}),
             "/plan/prefill/attention/cp: ranks cannot cut the prompts of qwen3-next-80b-a3b so far: each state "
             "follows from the one before it"));
}

TEST_CASE("ranks of a replica have whole key heads of delta networks") {
  CHECK(ends_so(refusal(kSmall, {{"/model", R"({"base": "qwen3-next-80b-a3b", "delta": {"key_heads": 1}})"},
                              {"/plan/decode/attention", R"({"dp": 1, "tp": 2})"},
                              {"/plan/decode/ep/degree", "1"}}),
             "/plan/decode/attention/tp: degree 2 does not divide the 1 key heads of the delta networks of "
             "qwen3-next-80b-a3b (changed)"));
}

TEST_CASE("a delta network says how it is built") {
  CHECK(ends_so(refusal(kSmall, "/model/delta", R"({"key_heads": 2})"),
             "delta: expected \"value_heads\", found none"));
}
