// What kind of training: keys of packed sequences and of reinforcement learning, each refused with one exact
// sentence.
#include "tests/invalid/refusals.h"

using namespace moebius;

namespace {

const char* const kPretrain = "study/deepseek-v3-train-2048-h800.json";
const char* const kSft = "smoke/sft-64-h800.json";
const char* const kRl = "smoke/rl-64-h800.json";
const char* const kRows = "validate/dgx-cloud-sft/lora-llama3-8b-8.json";
const char* const kExperts = "smoke/moe-64-h800.json";

}  // namespace

TEST_CASE("keys of another kind of training are refused") {
  check(
      kPretrain,
      {{"/workload/job", "stf",
        R"(/workload/job: expected one of "pretrain", "sft", "rl", "scoring", found "stf" (did you mean "sft"?))"},
       {"/workload/lengths", R"({"uniform": [1, 20]})",
        R"(/workload/lengths: lengths are for job "sft" only)"},
       {"/workload/prompt_share", "0.5",
        R"(/workload/prompt_share: a share of prompts is for job "sft" only)"},
       {"/workload/rl", "{}", R"(/workload/rl: these are for job "rl" only)"}});
  CHECK(
      refusal(kPretrain, "/workload/job", "sft") ==
      R"(s.json:23: /workload/lengths: job "sft": expected {"uniform": [LEAST, MOST]} or {"lognormal": {"median": TOKENS, "sigma": SIGMA}}, found none)");
}

TEST_CASE("lengths of packed sequences are those of a law, and fit in a row") {
  check(
      kSft,
      {{"/workload/lengths", "7",
        R"(/workload/lengths: expected {"uniform": [LEAST, MOST]} or {"lognormal": {"median": TOKENS, "sigma": SIGMA}}, found 7)"},
       {"/workload/lengths", R"({"constant": 512})",
        R"(/workload/lengths/constant: unknown key "constant": expected {"uniform": [LEAST, MOST]} or {"lognormal": {"median": TOKENS, "sigma": SIGMA}})"},
       {"/workload/lengths", R"({"uniform": [20, 10]})",
        R"(/workload/lengths/uniform: expected [LEAST, MOST], two lengths in tokens, at least 1 and the smaller one first, found an array)"},
       {"/workload/lengths", R"({"uniform": [20, 5000]})",
        R"(/workload/lengths: expected at most the sequence_length of 4096 tokens, found 5000)"},
       {"/workload/lengths", R"({"lognormal": {"median": 100}})",
        R"(/workload/lengths/lognormal: expected key "sigma", found none)"},
       {"/workload/prompt_share", "1.5",
        R"(/workload/prompt_share: expected a number from 0 to 1, found 1.5)"},
       {"/plan/cp", "2", R"(/plan/cp: packed sequences are not cut: expected 1, found 2)"}});
}

TEST_CASE(
    "a step of reinforcement learning has a batch of its prompts and samples, and one kind of rollout") {
  check(
      kRl,
      {{"/workload/rl/prompts", "63",
        R"(/workload/rl/prompts: 63 prompts x 8 samples = 504 sequences are no multiple of the 512 of global_batch)"},
       {"/workload/rl/response_lengths", R"({"uniform": [1, 2]})",
        R"(/workload/rl/response_lengths: response_tokens is the mean of these: expected one of the two)"},
       {"/workload/rl/response_tokens", "2048",
        R"(/workload/rl/response_tokens: expected at least 1 and fewer than the sequence_length of 2048, found 2048)"},
       {"/workload/rl/rollout", "{}",
        R"(/workload/rl/rollout/serving: expected either tokens_per_s_per_device or a serving plan, found none)"},
       {"/workload/rl/sync", "gather",
        R"(/workload/rl/sync: expected one of "broadcast", "none", found "gather")"}});
  CHECK(
      refusal(kRl, "/workload/rl/rollout/tokens_per_s_per_device", "10") ==
      R"(s.json:17: /workload/rl/rollout/serving: expected either tokens_per_s_per_device or a serving plan, found both)");
  CHECK(refusal(kRl, "/faults",
                R"([{"at": "0 s", "kind": "slow-node", "where": {"node": 1}, "share": 0.5}])") ==
        "s.json: --set /faults: faults are not followed through the phases of job \"rl\" so far: expected "
        "none");
  CHECK(refusal(kRl, "/plan/save", "dir") ==
        "s.json:11: /plan: a step of reinforcement learning is not saved or resumed so far");
}

TEST_CASE("adapters have a rank and matrices of the model beside which they stand") {
  check(
      kRows,
      {{"/workload/lora", R"({"targets": ["qkv"]})",
        R"(/workload/lora/rank: expected key "rank", found none)"},
       {"/workload/lora", R"({"rank": 8})",
        R"(/workload/lora/targets: expected at least one matrix beside which adapters stand, found none)"},
       {"/workload/lora/rank", "-1", R"(/workload/lora/rank: expected an integer from 0 to 65536, found -1)"},
       {"/workload/lora/rank", "4097",
        R"(/workload/lora/rank: every matrix with adapters is as wide as the model on one side: expected 4096 at most, found 4097)"},
       {"/workload/lora/targets", R"(["mlp_dwn"])",
        R"(/workload/lora/targets: expected names out of "qkv", "attention_out", "mlp_up", "mlp_down", "expert_up", "expert_down", found "mlp_dwn" (did you mean "mlp_down"?))"},
       {"/workload/lora/targets", R"(["qkv", "expert_up"])",
        R"(/workload/lora/targets: "expert_up" names matrices that llama-3.1-8b does not have)"},
       {"/workload/lora/alpha", "16",
        R"(/workload/lora/alpha: unknown key "alpha"; known are "rank", "targets")"},
       {"/plan/norms", "separate",
        R"(/plan/norms: "separate" is a kernel for the gradient of a norm's own weights, which /workload/lora freezes: expected "fused")"},
       {"/plan/save", "dir",
        R"(/plan/save: checkpoints hold no adapters so far: with /workload/lora expected none, found "dir")"},
       {"/plan/weights", "dir",
        R"(/plan/weights: checkpoints hold no adapters so far: with /workload/lora expected "random", found "dir")"},
       {"/plan/tp/dense", "2",
        R"(/plan/tp/dense: adapters are cut by one tensor-parallel degree: with /workload/lora expected that of attention, 1, found 2)"}});
  CHECK(refusal(kRows, "/workload/job", "scoring") ==
        "s.json:20: /workload/lora/rank: job \"scoring\" trains nothing: expected 0, found 8");
  CHECK(refusal(kRows, "/workload/lora/rank", "0").empty());
}

TEST_CASE("adapters are refused where the whole model is trained, and beside parts of experts") {
  const std::string lora = R"({"rank": 8, "targets": ["expert_up"]})";
  CHECK(refusal(kRl, "/workload/lora", R"({"rank": 8, "targets": ["qkv"]})") ==
        "s.json: --set /workload/lora/rank: job \"rl\" trains and sends out all weights so far: expected 0, "
        "found "
        "8");
  CHECK(refusal(kExperts, "/workload/lora", lora.c_str()) ==
        "s.json:15: /plan/precision/dispatch: adapters beside experts multiply tokens of 16 bits: expected "
        "\"bf16\", found \"fp8\"");
  CHECK(refusal(kPretrain, "/workload/lora", lora.c_str()) ==
        "s.json:7: /model: multi-token prediction is trained with the whole model: /workload/lora needs "
        "mtp_layers 0, found 1");
}
