// Keys that say where the state of a training run stands and in which formats: what they refuse.
#include "tests/invalid/refusals.h"

namespace moebius {
namespace {

// FP8, zero 1, 128 replicas of dense parameters and 2 of experts.
const char* const kTwoRegions = "study/deepseek-v3-train-two-regions.json";

}  // namespace

TEST_CASE("sharding, host memory and formats that do not go together are refused with what would") {
  check(
      kTwoRegions,
      {
          {"/plan/dp/buffers", "copied",
           "/plan/dp/buffers: buffers of shards are for zero 2 and 3, found zero 1"},
          {"/plan/dp/zero", "3",
           R"(/plan/dp/zero: a shard does not know the scales of its blocks: zero 3 with gemm "fp8" needs /plan/precision/weights "bf16", or scaling "tensor" or "history", found "block")"},
          {"/plan/recompute/every", "2",
           R"(/plan/recompute/every: one of several layers is for policy "full" only)"},
          {"/plan/precision/master_weights", "none",
           R"(/plan/precision/master_weights: weights of 8 bits lose small updates: master_weights "none" needs gemm "bf16" or "fp32", found "fp8")"},
          {"/plan/offload/gradients", "true",
           "/plan/offload/gradients: sums that are not sharded are reduced on the device: gradients in host "
           "memory need zero 2 or 3, found 1"},
          {"/plan/recompute/layers", "2",
           R"(/plan/recompute/layers: groups of layers are for policy "full" only)"},
          {"/plan/recompute/budget", "64 GB",
           R"(/plan/recompute/budget: a budget is for policy "hybrid" only)"},
      });
}

TEST_CASE("what stands whole from microbatch to microbatch says what it needs") {
  using Changes = std::vector<std::pair<const char*, const char*>>;
  const auto refused = [](Changes changes) {
    changes.insert(changes.begin(), {"/plan/pp/schedule", "1f1b"});
    return refusal(kTraining, changes);
  };
  const Changes three{{"/plan/dp/zero", "3"}, {"/plan/precision/weights", "bf16"}};
  const auto with = [&](Changes changes) {
    changes.insert(changes.begin(), three.begin(), three.end());
    return refused(changes);
  };
  CHECK(refused({{"/plan/dp/zero", "2"}, {"/plan/dp/accumulate", "whole"}}) == "");
  CHECK(with({{"/plan/dp/reshard_after_forward", "8"},
              {"/plan/precision/gradients", "fp32"},
              {"/plan/dp/accumulate", "whole-bf16"}}) == "");
  CHECK(
      with({{"/plan/dp/reshard_after_forward", "false"},
            {"/plan/dp/reshard_after_backward", "false"}}) == "");
  CHECK(
      refused({{"/plan/dp/zero", "1"}, {"/plan/dp/accumulate", "whole"}}) ==
      "s.json: --set /plan/dp/accumulate: zero 1 keeps gradients whole and sums them once a step: expected "
      "\"shards\", found \"whole\"");
  CHECK(refused({{"/plan/dp/zero", "2"},
                 {"/plan/pp/degree", "1"},
                 {"/workload/micro_batch", "1"},
                 {"/workload/global_batch", "2048"},
                 {"/plan/dp/accumulate", "whole"}}) ==
        "s.json: --set /plan/dp/accumulate: a step of one microbatch sums its gradients once: expected "
        "\"shards\", found \"whole\"");
  CHECK(
      refused({{"/plan/dp/zero", "2"},
               {"/plan/precision/gradients", "bf16"},
               {"/plan/dp/accumulate", "whole-bf16"}}) ==
      "s.json: --set /plan/dp/accumulate: gradients are in BF16 with /plan/precision/gradients \"bf16\": "
      "expected \"whole\", found \"whole-bf16\"");
  CHECK(refused({{"/plan/dp/zero", "2"}, {"/plan/dp/reshard_after_forward", "false"}}) ==
        "s.json: --set /plan/dp/reshard_after_forward: zero 2 shards no parameters: expected true, found false");
  CHECK(with({{"/plan/dp/reshard_after_forward", "1"}}) ==
        "s.json: --set /plan/dp/reshard_after_forward: expected true, false or a number of ranks from 2 on, "
        "found 1");
  CHECK(with({{"/plan/dp/reshard_after_forward", "3"}}) ==
        "s.json: --set /plan/dp/reshard_after_forward: 3 ranks that hold a copy between passes do not divide "
        "the 128 that weights are cut over");
  CHECK(
      with({{"/plan/overlap/two_batch", "true"}, {"/plan/dp/reshard_after_forward", "false"}}) ==
      "s.json: --set /plan/dp/reshard_after_forward: of forward and backward passes side by side one would "
      "free what the other uses: expected true, or false with reshard_after_backward false, found false");
  CHECK(
      with({{"/plan/dp/reshard_after_backward", "false"}}) ==
      "s.json: --set /plan/dp/reshard_after_backward: weights that do not stay whole behind forward passes "
      "cannot stay so behind backward passes: expected true, or reshard_after_forward false, found false");
}

TEST_CASE("layers that are computed again and weights that are gathered late say what they need") {
  CHECK(
      refusal(kTwoRegions, {{"/plan/recompute", R"({"policy": "full", "layers": 2, "every": 2})"}}) ==
      "s.json: --set /plan/recompute/every: one of 2 layers is computed again by itself: expected layers 1, "
      "found 2");
  CHECK(
      refusal(kTwoRegions,
              {{"/plan/recompute", R"({"policy": "selective", "ops": ["attention_out", "mlp_down"]})"}}) ==
      R"(s.json: --set /plan/recompute/ops: a layer is computed again from one of its two residual streams: )"
      R"(expected "attention_out" or "mlp_down", found both)");
  CHECK(refusal(kTwoRegions, {{"/plan/dp/zero", "0"}, {"/plan/dp/overlap_weights", "true"}}) ==
        "s.json: --set /plan/dp/overlap_weights: zero 0 gathers nothing: expected zero 1 or 2");
  CHECK(
      refusal(kTwoRegions, {{"/plan/save", R"("out")"}, {"/plan/dp/overlap_weights", "true"}}) ==
      "s.json: --set /plan/dp/overlap_weights: checkpoints hold weights that were gathered: expected false, "
      "found true");
  CHECK(refusal(kTwoRegions, {{"/plan/dp/zero", "3"}, {"/plan/dp/overlap_weights", "true"}}) ==
        "s.json: --set /plan/dp/overlap_weights: zero 3 gathers beside every pass: expected zero 1 or 2");
  const auto offloaded = [](const char* away) {
    return refusal(kTraining, {{"/plan/pp/schedule", "1f1b"},
                               {"/plan/dp/zero", "2"},
                               {"/plan/dp/overlap_weights", "true"},
                               {"/plan/offload", away}});
  };
  CHECK(offloaded(R"({"activations": true, "optimizer": true, "gradients": true})") == "");
  CHECK(
      offloaded(R"({"activations": true, "parameters": true})") ==
      "s.json: --set /plan/dp/overlap_weights: weights that stand on the device: expected false, found true "
      "with /plan/offload/parameters");
}

TEST_CASE("FP8 weights are sharded in BF16 by any recipe, and as they are by one scale for a tensor") {
  const auto sharded = [](const char* scaling, const char* weights) {
    return refusal(kTwoRegions, {{"/plan/dp/zero", "3"},
                                 {"/plan/precision/dispatch", R"("bf16")"},
                                 {"/plan/precision/fused_quantise", "false"},
                                 {"/plan/precision/scaling", scaling},
                                 {"/plan/precision/weights", weights}});
  };
  for (const char* scaling : {R"("block")", R"("tensor")", R"("micro")", R"("history")"})
    CHECK(sharded(scaling, R"("bf16")") == "");
  for (const char* scaling : {R"("tensor")", R"("history")"})
    CHECK(sharded(scaling, R"("as-multiplied")") == "");
  CHECK_THAT(sharded(R"("micro")", R"("as-multiplied")"),
             Catch::Contains("a shard does not know the scales"));
}

TEST_CASE("shards that do not divide the replicas, or that checkpoints do not know, are refused") {
  CHECK(refusal(kTwoRegions, {{"/plan/dp/zero", "2"}, {"/plan/dp/shard", "3"}}) ==
        "s.json: --set /plan/dp/shard: 3 ranks that share a copy do not divide the cp 1 x dp 128 = 128 "
        "replicas");
  CHECK(
      refusal(kTwoRegions,
              {{"/plan/precision/gemm", R"("bf16")"}, {"/plan/save", R"("out")"}, {"/plan/dp/zero", "3"}}) ==
      "s.json: --set /plan/dp/zero: checkpoints are cut for parameters that ranks hold whole: with weights "
      "or "
      "save expected zero 0, 1 or 2, found 3");
  CHECK(refusal(kTwoRegions, {{"/plan/dp/zero", "0"}, {"/plan/dp/shard", "8"}}) ==
        "s.json: --set /plan/dp/shard: copies of shards are for zero 1 to 3, found zero 0");
  for (const char* zero : {"1", "2"})
    CHECK(refusal(kTwoRegions, {{"/plan/dp/zero", zero}, {"/plan/dp/shard", "64"}}) == "");
  CHECK(refusal(kTwoRegions, {{"/plan/dp/zero", "2"},
                              {"/plan/offload", R"({"optimizer": true, "gradients": true})"}}) == "");
}

// A dense model whose parameters all replicas hold whole.
TEST_CASE("keys that would count for nothing are refused") {
  const char* const dense = "validate/internlm/7b-tp1-128.json";
  check(
      dense,
      {{"/plan/ep/capacity", "1",
        "/plan/ep/capacity: capacity 1 of the experts of llama-2-7b (changed), which has none"},
       {"/workload/experts", R"({"popularity": {"zipf": 1}})",
        R"(/workload/experts/popularity: tokens of llama-2-7b (changed) choose no experts: expected "balanced")"},
       {"/plan/precision/dispatch", "fp8",
        R"(/plan/precision/dispatch: tokens of llama-2-7b (changed) go to no experts: expected "bf16", found "fp8")"},
       {"/plan/overlap/dispatch_combine", "true",
        "/plan/overlap/dispatch_combine: tokens of llama-2-7b (changed) go to no experts: expected false, "
        "found true"},
       {"/plan/overlap/communication_sms", "20",
        "/plan/overlap/communication_sms: tokens of llama-2-7b (changed) go to no experts: expected 0, found "
        "20"},
       {"/plan/ep/dispatch", "all-to-all",
        R"(/plan/ep/dispatch: tokens of llama-2-7b (changed) go to no experts: expected "auto", found "all-to-all")"},
       {"/plan/ep/nodes_per_token", "1",
        "/plan/ep/nodes_per_token: tokens of llama-2-7b (changed) go to no experts: expected 0, found 1"},
       {"/plan/ep/kernels", "separate",
        R"(/plan/ep/kernels: tokens of llama-2-7b (changed) choose no experts: expected "fused", found "separate")"},
       {"/plan/ep/products", "each",
        R"(/plan/ep/products: llama-2-7b (changed) has no experts to multiply: expected "grouped", found "each")"},
       {"/workload/experts/per_microbatch", "true",
        "/workload/experts/per_microbatch: expected false with this popularity, found true: what is balanced "
        "is not drawn"},
       {"/plan/dp/prefetch", "8",
        "/plan/dp/prefetch: parameters that stay on the device are neither gathered nor copied: expected 1 "
        "with zero 1, found 8"},
       {"/plan/dp/group_layers", "3",
        "/plan/dp/group_layers: parameters that stay on the device are neither gathered nor copied: expected "
        "1 with zero 1, found 3"}});
  const auto refused_ops = [](const char* file, const std::string& ops) {
    return refusal(file, "/plan/recompute", R"({"policy": "selective", "ops": [)" + ops + "]}");
  };
  const std::string at = "s.json: --set /plan/recompute/ops: ";
  CHECK(refused_ops(dense, R"("mla_up", "gate", "expert_up", "mlp_up")") == "");
  CHECK(refused_ops(kTwoRegions, R"("dispatch")") ==
        at + R"(what "dispatch" sends again is read by "permute" alone: expected both, found one)");
  CHECK(refused_ops(kTwoRegions, R"("dispatch", "permute")") == "");
  for (const auto& moved : {std::pair{"/plan/dp/zero", "3"}, std::pair{"/plan/dp/overlap_weights", "true"},
                            std::pair{"/plan/offload", R"({"activations": true})"}})
    CHECK(refusal(dense, {moved,
                          {"/plan/precision/accumulation", "fused"},
                          {"/plan/dp/prefetch", "8"},
                          {"/plan/dp/group_layers", "3"}}) == "");
}

}  // namespace moebius
