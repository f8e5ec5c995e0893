// What a scenario may not say of the engine around iterations, each refused with one exact sentence.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kEngine = "smoke/serve-engine.json";

}  // namespace

TEST_CASE("the shipped scenario of an engine is accepted as it is") {
  CHECK(refusal(kEngine, "", "") == "");
}

TEST_CASE("the host's work is none or measured or times by name") {
  check(kEngine, "/plan/scheduler/host_overhead", "guessed",
        "/plan/scheduler/host_overhead: expected \"none\", \"measured\" or an object of times, found "
        "\"guessed\"");
  check(
      kEngine, "/plan/scheduler/host_overhead", R"({"per_word": "1 us"})",
      R"(unknown key "per_word"; known are "per_image", "per_iteration", "per_prompt_token", "per_request", "per_sample", "per_sequence", "per_token")");
  check(
      kEngine, "/plan/scheduler/host_per_iteration", "1 ms",
      "/plan/scheduler/host_overhead: host_per_iteration and host_per_sequence say the same: expected one of "
      "both");
  check(kEngine, "/plan/scheduler/sampling", "device",
        "/plan/scheduler/host_overhead: per_sample counts only with sampling \"host\"");
}

TEST_CASE("what is submitted behind a launch chooses tokens on the device") {
  check(
      kEngine, "/plan/scheduler/host_per_submission", "1 ms",
      R"(/plan/scheduler/host_per_submission: "host_per_submission" counts only with sampling "device" or "gathered")");
  check(
      kSmall, "/plan/scheduler/host_per_submission", "soon",
      R"(/plan/scheduler/host_per_submission: expected a time such as "2.8 us", found "soon")");
  CHECK_THAT(
      refusal(kSmall, {{"/plan/steps", "full"}, {"/plan/scheduler/host_per_submission", "\"1 ms\""}}),
      Catch::Contains("/plan/scheduler: the engine around iterations is simulated with steps \"surface\""));
  CHECK(refusal(kApart, "/plan/scheduler/host_per_submission", "1 ms") == "");
}

// What a framework's loop takes is a default as any other.
TEST_CASE("times of the host are said beside a framework that has some") {
  for (const char* framework : {"vllm-v0", "sglang"})
    CHECK(refusal(kEngine, "/plan/framework", framework) == "");
  CHECK_THAT(
      refusal(kEngine, {{"/plan/framework", "sglang"}, {"/plan/scheduler/host_per_iteration", "1 ms"}}),
      Catch::Contains("host_per_iteration and host_per_sequence say the same: expected one of both"));
}

TEST_CASE("prompts that gather say how long and for what share") {
  check(kEngine, "/plan/scheduler/receive_every", "0",
        "/plan/scheduler/receive_every: expected an integer from 1 to 65536, found 0");
  check(kEngine, "/plan/scheduler/gather_prompts", "2",
        "/plan/scheduler/gather_prompts: \"gather_prompts\" counts only with \"await_prompts\"");
  check(kEngine, "/plan/scheduler/gather_share", "0.5",
        "/plan/scheduler/gather_share: \"gather_share\" counts only with \"gather_iterations\"");
}

TEST_CASE("keys of an engine that nothing reads are refused") {
  check(kSmall, "/plan/scheduler/input_workers", "2",
        R"(/plan/scheduler/input_workers: "input_workers" counts only with pipeline "parallel")");
  check(kSmall, "/plan/scheduler/output_workers", "2",
        R"(/plan/scheduler/output_workers: "output_workers" counts only with pipeline "parallel")");
  check(kSmall, "/plan/scheduler/captured_step", "4",
        R"(/plan/scheduler/captured_step: "captured_step" counts only with launch "graph")");
  check(kSmall, "/plan/scheduler/captured_prompts", "512",
        R"(/plan/scheduler/captured_prompts: "captured_prompts" counts only with launch "graph")");
  check(kSmall, "/plan/scheduler/captured_most", "256",
        R"(/plan/scheduler/captured_most: "captured_most" counts only with launch "graph")");
  check(kSmall, "/plan/scheduler/captured_padding", "false",
        R"(/plan/scheduler/captured_padding: "captured_padding" counts only with launch "graph")");
}

TEST_CASE("where graphs end is a number of sequences, or of the tokens that one has at least") {
  check(kEngine, "/plan/scheduler/captured_most", "-1",
        "/plan/scheduler/captured_most: expected an integer from 0 to 65536, found -1");
  check(kEngine, "/plan/scheduler/captured_counts", "rows",
        R"(/plan/scheduler/captured_counts: expected one of "sequences", "tokens", found "rows")");
  check(kEngine, "/plan/scheduler/captured_counts", "tokens",
        R"(/plan/scheduler/captured_counts: "captured_counts" counts only with a number of "captured_most")");
  CHECK_THAT(
      refusal(kEngine, {{"/plan/decode/speculative", R"({"mtp": 3, "acceptance": 0.8, "model": "qwen3-8b"})"},
                        {"/plan/scheduler/captured_counts", "\"tokens\""},
                        {"/plan/scheduler/captured_most", "3"}}),
      Catch::Contains("/plan/scheduler/captured_most: a sequence decodes 4 tokens in an iteration: "
                      "expected 0 or at least 4, found 3"));
  CHECK(refusal(kEngine, "/plan/scheduler/captured_most", "32") == "");
}

TEST_CASE("when prompts join those that decode is refused where these are apart") {
  check(kApart, "/plan/scheduler/receive_every", "50",
        R"(/plan/scheduler/receive_every: "receive_every" counts only with prefill and decode on one pool)");
  check(kApart, "/plan/scheduler/await_prompts", "5",
        R"(/plan/scheduler/await_prompts: "await_prompts" counts only with prefill and decode on one pool)");
  check(
      kApart, "/plan/scheduler/gather_iterations", "10",
      R"(/plan/scheduler/gather_iterations: "gather_iterations" counts only with prefill and decode on one pool)");
  check(
      kApart, "/plan/scheduler/output_reserve_decay", "600",
      R"(/plan/scheduler/output_reserve_decay: "output_reserve_decay" counts only with prefill and decode on one pool)");
  check(
      kApart, "/plan/scheduler/newcomer_reserve", "4096",
      R"(/plan/scheduler/newcomer_reserve: "newcomer_reserve" counts only with prefill and decode on one pool)");
  CHECK(refusal(kEngine, "/plan/scheduler/receive_every", "50") == "");
  CHECK(refusal(kEngine, "/plan/scheduler/newcomer_reserve", "4096") == "");
}

TEST_CASE("what a launch takes is refused where launches are hidden") {
  check(kApart, "/cluster/launch", "40 us",
        R"(/cluster/launch: "launch" counts only with /plan/scheduler/launch "kernel" or "graph")");
  CHECK(refusal(kApart, {{"/cluster/launch", "\"40 us\""}, {"/plan/scheduler/launch", "\"kernel\""}}) == "");
}

TEST_CASE("kernels that write 8 or 4 bits are refused where no product reads them") {
  check(kApart, "/plan/fused_quantise", "false",
        R"(/plan/fused_quantise: "fused_quantise" counts only with products in 8 or 4 bits)");
  check(kApart, "/plan/quantised_output", "true",
        R"(/plan/quantised_output: "quantised_output" counts only with products in 8 or 4 bits)");
  CHECK(refusal(kApart, {{"/plan/precision", R"({"gemm": "fp8"})"}, {"/plan/fused_quantise", "false"}}) ==
        "");
  check(
      kApart, "/plan/quantised_reduction", "true",
      R"(/plan/quantised_reduction: "quantised_reduction" counts only with "fused_reduction" and products in 4 bits)");
}

TEST_CASE("parts of a kernel that there is not are refused") {
  check(kApart, "/plan/fused_append", "false",
        R"(/plan/fused_append: "fused_append" counts only with "fused")");
  check(
      kApart, "/plan/one_expert_call", "true",
      R"(/plan/one_expert_call: "one_expert_call" counts only with launches that are counted, of a model with experts)");
}

TEST_CASE("slots and layouts say what they do not go with") {
  check(kEngine, "/plan/scheduler/policy", "slot",
        "/plan/scheduler/policy: expected one of \"global\", \"slots\", found \"slot\" (did you mean "
        "\"slots\"?)");
  check(kApart, "/plan/scheduler/slot_tokens", "4096",
        "/plan/scheduler/slot_tokens: what a slot holds is its own, so that prefixes are not shared: "
        "expected 0 "
        "with cache/prefix");
  check(kApart, "/plan/layout", "padded",
        "/plan/layout: rows of one length hold prompts alone: expected \"flat\" with batching \"mixed\"");
}

TEST_CASE("the engine around iterations needs iterations that are timed on a grid") {
  const auto full = [](const char* pointer, const char* value) {
    return refusal(kSmall, {{"/plan/steps", "full"}, {pointer, value}});
  };
  const std::string timed = R"( simulated with steps "surface" only, found "full")";
  CHECK_THAT(full("/plan/scheduler/policy", "slots"),
             Catch::Contains("/plan/scheduler: the engine around iterations is" + timed));
  CHECK_THAT(full("/plan/decode/speculative", R"({"mtp": 1, "acceptance": 0.8, "model": "qwen3-8b"})"),
             Catch::Contains("/plan/decode/speculative: guesses are" + timed));
  CHECK_THAT(full("/plan/scheduler/gather_iterations", "4"),
             Catch::Contains("/plan/scheduler: how prompts gather is" + timed));
  // What a framework's host takes is left out where nothing but its name says it.
  CHECK(full("/plan/framework", "vllm").empty());
  CHECK_THAT(
      refusal(kSmall,
              {{"/plan/steps", "full"}, {"/plan/framework", "vllm"}, {"/plan/scheduler/launch", "graph"}}),
      Catch::Contains("/plan/scheduler: the engine around iterations is" + timed));
  // Where it is not said, such a batch is timed.
  CHECK(refusal(kSmall, {{"/plan/scheduler/policy", "slots"}}).empty());
  CHECK(refusal(kSmall, {{"/plan/scheduler/gather_iterations", "4"}}).empty());
}

TEST_CASE("iterations that are timed one by one know no fault") {
  check(kEngine, "/faults", R"([{"at": "1 s", "kind": "slow-node", "where": {"node": 0}, "share": 0.5}])",
        "/faults: iterations are timed one by one, on devices and a network that are whole: expected steps "
        "\"full\" with it");
  check(kEngine, "/cluster/failed", R"([{"nic": 0, "capacity": 0.1}])",
        "/cluster/failed: iterations are timed one by one, on devices and a network that are whole: expected "
        "steps \"full\" with it");
}

TEST_CASE("guesses need somebody who makes them, and a chance for each") {
  check(kEngine, "/plan/decode/speculative/acceptance", "0.7",
        "/plan/decode/speculative/acceptance: \"acceptance\" counts only with \"mtp\" guesses");
  check(kEngine, "/plan/decode/speculative/mtp", "2",
        "/plan/decode/speculative/mtp: qwen3-30b-a3b has no module that guesses: expected 0, or \"model\" "
        "beside it");
  check(
      kEngine, "/plan/decode/speculative", R"({"mtp": 2, "model": "qwen3-8c"})",
      R"(unknown model "qwen3-8c" (did you mean "qwen3-8b"?); `moebius list models` names all, and {"base": NAME, ...changes} describes another)");
  check(kEngine, "/plan/decode/speculative/acceptance_by_place", "[0.5]",
        "/plan/decode/speculative/acceptance_by_place: expected 0 numbers from 0 to 1, one for each guess, "
        "found "
        "an array");
}

TEST_CASE("room to swap counts only where sequences are swapped") {
  check(kEngine, "/plan/scheduler/swap_space", "8 GiB",
        "/plan/scheduler/swap_space: \"swap_space\" counts only with preemption \"swap\"");
}

TEST_CASE("layers that keep their window alone are refused where all have to keep all tokens") {
  const char* const kWindows = "study/serve-gpt-oss-windows.json";
  CHECK(refusal(kWindows, "", "") == "");
  check(kEngine, "/plan/cache/windows", "window",
        "has no layers with a window: expected \"all\", found \"window\"");
  check(kWindows, "/plan/steps", "full",
        "/plan/cache/windows: pages that are carried out op by op hold all layers: expected \"all\", found "
        "\"window\"");
  check(kWindows, "/plan/cache/dram", R"({"capacity": "100 GB"})",
        "/plan/cache/windows: blocks in tiers below device memory hold all layers: expected \"all\", found "
        "\"window\"");
}

TEST_CASE("how 8-bit products are scaled counts where there are some") {
  check(kSmall, "/plan/precision/scales", "tensor", R"("scales" counts only with products in "fp8")");
}

TEST_CASE("a reserve that falls begins higher, and says in how many iterations it falls") {
  check(kEngine, "/plan/scheduler/output_reserve_start", "0.5",
        "/plan/scheduler/output_reserve_start: \"output_reserve_start\" counts only with "
        "\"output_reserve_decay\"");
  check(kEngine, "/plan/scheduler/output_reserve_decay", "-1",
        "/plan/scheduler/output_reserve_decay: expected an integer from 0 to 1048576, found -1");
  check(kEngine, "/plan/scheduler/newcomer_reserve", "-1",
        "/plan/scheduler/newcomer_reserve: expected an integer from 0 to 16777216, found -1");
  CHECK_THAT(refusal(kEngine, {{"/plan/scheduler/output_reserve", "0.5"},
                               {"/plan/scheduler/output_reserve_decay", "10"},
                               {"/plan/scheduler/output_reserve_start", "0.4"}}),
             Catch::EndsWith("/plan/scheduler/output_reserve_start: expected at least the output_reserve of "
                             "0.5, found 0.4"));
}

TEST_CASE("prompts are absorbed where there are latents") {
  check(kSmall, "/plan/prefill/absorbed_below", "-1",
        "/plan/prefill/absorbed_below: expected an integer from 0 to 16777216, found -1");
  check(kEngine, "/plan/prefill/absorbed_below", "1",
        "/plan/prefill/absorbed_below: \"absorbed_below\" counts only where queries attend to all latents of "
        "their sequence, and qwen3-30b-a3b has none");
}
