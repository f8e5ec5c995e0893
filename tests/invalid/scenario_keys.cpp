// One key at a time is wrong in a valid scenario; each is refused with one exact sentence.
#include "tests/invalid/refusals.h"

using namespace moebius;

TEST_CASE("keys that nobody knows are named, with the nearest that is known") {
  check(kTraining,
        {
            {"/plan/pp/shedule", "1f1b",
             R"(/plan/pp/shedule: unknown key "shedule" (did you mean "schedule"?))"},
            {"/clusters", "{}", R"(/clusters: unknown key "clusters" (did you mean "cluster"?))"},
            {"/plan/xyzzy", "1", R"(/plan/xyzzy: unknown key "xyzzy")"},
            {"/cluster/pools/0/accelerator", R"({"base": "h800-sxm", "memori": "80 GB"})",
             R"(/cluster/pools/0/accelerator/memori: unknown key "memori" (did you mean "memory"?))"},
            {"/workload/experts/popularity", R"({"zip": 1})",
             R"(/workload/experts/popularity: expected key "zipf", found none (is "zip" meant?))"},
        });
}

TEST_CASE("a value of the wrong type or out of range says what was expected and what was found") {
  check(
      kTraining,
      {
          {"/plan/pp/degree", R"("16")",
           R"(/plan/pp/degree: expected an integer from 1 to 1048576, found "16")"},
          {"/plan/pp/degree", "0", R"(/plan/pp/degree: expected an integer from 1 to 1048576, found 0)"},
          {"/plan/pp/degree", "1.5", R"(/plan/pp/degree: expected an integer from 1 to 1048576, found 1.5)"},
          {"/plan/pp", "[]", R"(/plan/pp: expected an object, found an array)"},
          {"/plan/tp/sequence_parallel", "1",
           R"(/plan/tp/sequence_parallel: expected true or false, found 1)"},
          {"/name", "7", R"(/name: expected a string, found 7)"},
          {"/name", R"("a\u001b[1m")",
           R"(/name: expected one line without control characters, found "a\u001b[1m")"},
          {"/seed", "9007199254740993",
           R"(/seed: expected an integer from 0 to 9007199254740992, found 9007199254740993)"},
          {"/seed", "-1", R"(/seed: expected an integer from 0 to 9007199254740992, found -1)"},
          {"/moebius", "2", R"(/moebius: expected 1, found 2)"},
          {"/cluster/pools/0/nodes", "0",
           R"(/cluster/pools/0/nodes: expected an integer from 1 to 1048576, found 0)"},
          {"/cluster/pools", "{}", R"(/cluster/pools: expected an array of objects, found an object)"},
          {"/cluster/pools", "[]", R"(/cluster/pools: expected at least one pool, found none)"},
          {"/workload/experts/popularity", R"({"zipf": -1})",
           R"(/workload/experts/popularity/zipf: expected a number from 0 to 8, found -1)"},
          {"/expect/0/tolerance", R"("5%")",
           R"(/expect/0/tolerance: expected a number from 0 to 10, found "5%")"},
          {"/expect/0/value", "0",
           R"(/expect/0/value: expected a figure other than 0: differences are relative)"},
      });
}

TEST_CASE("quantities need their unit, and a physical sign") {
  check(
      kTraining,
      {
          {"/cluster/fabric/nic", "400",
           R"(/cluster/fabric/nic: expected a byte rate such as "400 Gb/s", found 400)"},
          {"/cluster/fabric/nic", R"("-400 Gb/s")",
           R"(/cluster/fabric/nic: expected a byte rate such as "400 Gb/s", more than 0 B/s, found "-400 Gb/s")"},
          {"/cluster/fabric/nic", R"("nan Gb/s")",
           R"(/cluster/fabric/nic: expected a byte rate such as "400 Gb/s", found "nan Gb/s")"},
          {"/cluster/pools/0/accelerator", R"({"base": "h800-sxm", "memory": "80 GBs"})",
           R"(/cluster/pools/0/accelerator/memory: expected a size such as "16 GiB", found "80 GBs")"},
          {"/timeline/max_bytes", "5", R"(/timeline/max_bytes: expected a size such as "16 GiB", found 5)"},
          {"/timeline/window", R"("10 GB")",
           R"(/timeline/window: expected a time such as "2.8 us", found "10 GB")"},
      });
}

TEST_CASE("names that are in no table or catalog suggest the nearest") {
  check(
      kTraining,
      {
          {"/kind", "traning",
           R"(/kind: expected one of "training", "collective", "serving", "kv-replay", "cluster", found "traning" (did you mean "training"?))"},
          {"/model", "deepsek-v3",
           R"(/model: unknown model "deepsek-v3" (did you mean "deepseek-v3"?); `moebius list models` names all, and {"base": NAME, ...changes} describes another)"},
          {"/cluster/pools/0/accelerator", "h801-sxm",
           R"(/cluster/pools/0/accelerator: expected the name of an accelerator, found "h801-sxm" (did you mean "h800-sxm"?))"},
          {"/cluster/pools/0/node", "hgx-9",
           R"(/cluster/pools/0/node: expected the name of a node, found "hgx-9" (did you mean "hgx-8"?))"},
          {"/cluster/fabric/type", "fattree",
           R"(/cluster/fabric/type: expected the name of a fabric, found "fattree" (did you mean "fat-tree"?))"},
          {"/cluster/collectives", "nccl",
           R"(/cluster/collectives: expected one of "structure", "library", "sglang", "trtllm", "vllm", found "nccl")"},
          {"/plan/precision/gemm", "fp4",
           R"(/plan/precision/gemm: expected one of "bf16", "fp8", "fp32", found "fp4" (did you mean "fp8"?))"},
          {"/plan/recompute/ops", R"(["softmax"])",
           R"(/plan/recompute/ops: expected names out of "rmsnorm", "mla_up", "swiglu", "attention", "qkv", "gate", "dispatch", "permute", "expert_up", "mlp_up", "attention_out", "mlp_down", found "softmax")"},
          {"/plan/recompute/ops", R"(["rmsnorm", "rmsnorm"])",
           R"(/plan/recompute/ops: expected different names, found "rmsnorm" twice)"},
          {"/workload/experts/popularity", "skewed",
           R"(/workload/experts/popularity: expected "balanced", {"zipf": EXPONENT}, {"dirichlet": CONCENTRATION} or {"recorded": FILE}, found "skewed")"},
          {"/workload/experts/popularity", R"({"dirichlet": 0})",
           R"(/workload/experts/popularity/dirichlet: expected a number from 0.001 to 1000000, found 0)"},
          {"/workload/experts/drift", "0.1",
           R"(/workload/experts/drift: expected 0 with this popularity, found 0.1: only "zipf" and "dirichlet" change from step to step by themselves)"},
          {"/cluster/variation", R"({"sigma": 0.2})",
           R"(/cluster/variation/sigma: expected a number from 0 to 0.11, found 0.2)"},
          {"/cluster/variation", R"({"power": -0.1})",
           R"(/cluster/variation/power: expected a number from 0 to 0.2, found -0.1)"},
          {"/cluster/variation", R"({"slow": [{"device": 2048, "speed": 0.9}]})",
           R"(/cluster/variation: expected a device from 0 to 2047, found 2048)"},
          {"/plan/ep/capacity", "-1", R"(/plan/ep/capacity: expected a number from 0 to 1024, found -1)"},
          {"/timeline/detail", "all",
           R"(/timeline/detail: expected one of "ops", "steps", "none", found "all")"},
      });
}

TEST_CASE("what is not available is refused with what is") {
  check(
      kTraining,
      {
          {"/kind", "search",
           R"(/kind: expected one of "training", "collective", "serving", "kv-replay", "cluster", found "search")"},
          {"/plan/ep/dispatch", "nccl",
           R"(/plan/ep/dispatch: expected one of "auto", "deepep", "deepep-low-latency", "all-to-all", "all-gather", found "nccl")"},
          {"/plan/dp/zero", "4", R"(/plan/dp/zero: expected one of 0, 1, 2, 3, found 4)"},
          {"/plan/tp/dense", "7",
           R"(/plan/tp/dense: degree of dense MLPs 7 does not divide the 18432 columns of a dense MLP of deepseek-v3)"},
          {"/plan/tp/dense", "256",
           R"(/plan/tp/dense: degree of dense MLPs 256 does not divide the tp 1 x cp 1 x dp 128 = 128 ranks of a pipeline stage)"},
          {"/plan/tp/chunks", "4", R"(/plan/tp/chunks: pieces are for overlap true only)"},
          {"/plan/tp/chunks", "129", R"(/plan/tp/chunks: expected an integer from 0 to 128, found 129)"},
          {"/plan/tp/overlap", "true",
           R"(/plan/tp/overlap: overlap true needs a tensor-parallel degree above 1, found 1)"},
          {"/model", "deepseek-v3.2",
           R"(/model: deepseek-v3.2 chooses keys by an indexer, which is served and not trained so far)"},
          {"/model", "deepseek-v4-pro",
           R"(/model: model deepseek-v4-pro cannot run: compressed multi-query attention with an indexer (1024 keys), low-rank output projections and hash-routed layers)"},
      });
}

TEST_CASE("degrees, experts and batches that do not fit each other are refused with their numbers") {
  check(
      kTraining,
      {
          {"/plan/ep/degree", "48",
           R"(/plan/ep/degree: expert-parallel degree 48 does not divide the tp 1 x cp 1 x dp 128 = 128 ranks of a pipeline stage)"},
          {"/plan/pp/degree", "64",
           R"(/plan/pp/degree: the 61 layers of deepseek-v3 cannot fill 64 pipeline stages)"},
          {"/plan/dp/degree", "256",
           R"(/plan/dp/degree: tp 1 x cp 1 x pp 16 x dp 256 = 4096 ranks do not fit on the 2048 devices of pool "train")"},
          {"/workload/global_batch", "15361",
           R"(/workload/global_batch: 15361 sequences are not a multiple of micro_batch 1 x dp 128 = 128)"},
          {"/plan/ep/nodes_per_token", "3",
           R"(/plan/ep/nodes_per_token: 3 nodes per token do not divide the 8 experts that a token of deepseek-v3 uses)"},
          {"/plan/ep/nodes_per_token", "9",
           R"(/plan/ep/nodes_per_token: 9 nodes per token, but an expert-parallel group of 64 ranks stands on 8)"},
          {"/plan/overlap/communication_sms", "132",
           R"(/plan/overlap/communication_sms: 132 cores to hold, but h800-sxm has 132)"},
          {"/plan/tp/sequence_parallel", "true",
           R"(/plan/tp/sequence_parallel: sequence_parallel true needs a tensor-parallel degree above 1, found 1)"},
      });
  check(
      kCollective,
      {
          {"/workload/ranks", "1025",
           R"(/workload/ranks: 1025 ranks do not fit on the 1024 devices of the cluster)"},
          {"/workload/operation", "allreduce",
           R"(/workload/operation: expected one of "all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all", "send-recv", "flows", found "allreduce" (did you mean "all-reduce"?))"},
          {"/workload/ranks", "1", R"(/workload/ranks: expected an integer from 2 to 1048576, found 1)"},
          {"/workload/algorithm", "rail-local",
           R"(/workload/algorithm: all_reduce has no algorithm "rail-local": expected auto, ring, tree, direct, hierarchical, in-switch)"},
          {"/workload/elements", "1000",
           R"(/workload/elements: expected either bytes or elements, found both)"},
          {"/workload/channels", "-1", R"(/workload/channels: expected an integer from 0 to 1024, found -1)"},
          {"/workload/matrix", R"({"zipf": 1})",
           R"(/workload/matrix: only an all-to-all has parts of its own for each rank)"},
          {"/model", "deepseek-v3",
           R"(/model: unknown key "model"; known are "$schema", "cluster", "expect", "extends", "failover", "faults", "kind", "moebius", "name", "seed", "timeline", "workload")"},
      });
}

TEST_CASE(
    "a relation is refused at the key that stands in the file, with its line, when another one was set") {
  struct Changes {
    std::vector<std::pair<const char*, const char*>> sets;
    const char* sentence;
  };
  const std::vector<Changes> cases{
      {{{"/plan/pp/degree", "3"}},
       R"(s.json:12: /plan: tp 1 x cp 1 x pp 3 = 3 ranks a replica do not divide the 2048 devices of pool "train")"},
      {{{"/cluster/pools/0/accelerator", "a800-sxm"}},
       R"(s.json:18: /plan/precision/gemm: a800-sxm has no native fp8 arithmetic)"},
      {{{"/plan/recompute/policy", "none"}},
       R"(s.json:19: /plan/recompute/ops: ops are for policy "selective" only)"},
      {{{"/plan/tp/attention", "2"}, {"/plan/tp/dense", "2"}},
       R"(s.json:13: /plan/tp/sequence_parallel: a model with experts and tensor-parallel degree 2 needs sequence_parallel true, found false)"},
      {{{"/model", R"({"base": "deepseek-v3", "experts": {"routed": 200}})"}},
       R"(s.json:15: /plan/ep/degree: expert-parallel degree 64 does not divide the 200 experts of deepseek-v3 (changed))"},
      {{{"/plan/ep/degree", "128"}, {"/workload/sequence_length", "4097"}, {"/plan/cp", "2"}},
       R"(s.json: --set /workload/sequence_length: 4097 tokens are not a multiple of cp 2 x tp 1 = 2)"},
      {{{"/model", "llama-3.1-8b"}},
       R"(s.json:15: /plan/ep/degree: expert-parallel degree 64 for llama-3.1-8b, which has no experts)"},
      {{{"/model", "llama-3.1-8b"}, {"/plan/tp", R"({"attention": 16, "sequence_parallel": true})"}},
       R"(s.json: --set /plan/tp/attention: tensor-parallel degree 16 does not divide the 8 key-value heads of llama-3.1-8b)"},
      {{{"/plan/precision/scaling", R"("tensor")"}},
       R"(s.json:18: /plan/precision/dispatch: tokens carry no scale of their whole tensor: scaling "tensor" needs dispatch "bf16", found "fp8")"},
      {{{"/plan/precision/scaling", R"("tensor")"}, {"/plan/precision/gemm", R"("bf16")"}},
       R"(s.json: --set /plan/precision/scaling: scaling "tensor" is for gemm "fp8", found gemm "bf16")"},
      {{{"/plan/precision/scaling", R"("tensor")"},
        {"/plan/precision/dispatch", R"("bf16")"},
        {"/plan/precision/combine", R"("fp8")"}},
       R"(s.json: --set /plan/precision/combine: tokens carry no scale of their whole tensor: scaling "tensor" needs combine "bf16", found "fp8")"},
      {{{"/plan/precision/scaling", R"("tensor")"},
        {"/plan/precision/dispatch", R"("bf16")"},
        {"/plan/dp/zero", "1"}},
       R"(s.json: --set /plan/dp/zero: a shard does not know the scale of its whole weight: scaling "tensor" needs zero 0 or 3, or weights "bf16", found 1)"},
      {{{"/plan/precision/scaling", R"("micro")"}, {"/plan/precision/fused_quantise", "true"}}, ""},
      {{{"/plan/precision/scaling", R"("micro")"},
        {"/plan/tp", R"({"attention": 4, "sequence_parallel": true, "overlap": true, "chunks": 3})"}},
       R"(s.json: --set /plan/tp/overlap: pieces end amid the 32 tokens of a scale: scaling "micro" in 3 pieces needs a multiple of 96 tokens on a rank, found 1024)"},
      {{{"/plan/precision/scaling", R"("micro")"},
        {"/plan/tp", R"({"attention": 4, "sequence_parallel": true, "overlap": true})"}},
       ""},
      {{{"/plan/precision/scaling", R"("micro")"}, {"/plan/precision/combine", R"("fp8")"}},
       R"(s.json: --set /plan/precision/combine: results travel in 8 bits with a scale for 128 elements: scaling "micro" needs combine "bf16", found "fp8")"},
      {{{"/plan/precision/scaling", R"("tensor")"},
        {"/plan/precision/dispatch", R"("bf16")"},
        {"/plan/precision/weights", R"("bf16")"},
        {"/plan/precision/fused_quantise", "true"}},
       R"(s.json: --set /plan/precision/fused_quantise: operands are quantised both ways by a pass of their own: scaling "tensor" needs false, found true)"},
      {{{"/plan/precision/weights", R"("bf16")"}, {"/plan/precision/gemm", R"("bf16")"}},
       R"(s.json: --set /plan/precision/weights: weights "bf16" are quantised for gemm "fp8", found gemm "bf16")"},
      {{{"/plan/clip", "-1"}}, R"(s.json: --set /plan/clip: expected a number from 0 to 1e+30, found -1)"},
  };
  for (const Changes& c : cases) {
    Document document = base(kTraining);
    for (const auto& [pointer, json] : c.sets) set_at_pointer(document, pointer, json);
    CHECK(refusal(document) == c.sentence);
  }
}

TEST_CASE("sizes that cannot be counted are refused before anything is built") {
  check(kCollective,
        {{"/workload/bytes", "1e20 B", "/workload/bytes: expected at most 1.15 EB, found 100 EB"}});
  check(kTraining,
        {{"/workload/steps", "1048576",
          "/workload/steps: 1048576 steps of 120 microbatches on 16 rank classes are more than the "
          "2^31 passes of one run"}});
  Document large = base(kTraining);
  set_at_pointer(large, "/workload/sequence_length", "16777216");
  set_at_pointer(large, "/workload/micro_batch", "1");
  CHECK(refusal(large) ==
        "s.json: --set /workload/micro_batch: 16777216 tokens on each of 64 ranks, to 8 experts each, are "
        "more than "
        "the 2^31 copies of one dispatch");
  set_at_pointer(large, "/workload/micro_batch", "128");
  set_at_pointer(large, "/workload/global_batch", "16384");
  CHECK(refusal(large) ==
        "s.json: --set /workload/micro_batch: 128 sequences of 16777216 tokens are more than the 2^31 that "
        "one rank "
        "can hold");
}

TEST_CASE("devices of a node that is changed are refused where they stand") {
  check(kTraining, "/cluster/pools/0/node", R"({"base": "hgx-8", "storage": ["nvme-gen5", "nvme-gen9"]})",
        "s.json: --set /cluster/pools/0/node/storage/1: expected the name of a storage device, found "
        "\"nvme-gen9\" (did you mean \"nvme-gen4\"?)");
}

TEST_CASE(
    "a model is trained on the positions that it has learned, and has no experts by their layers alone") {
  const char* kSmallTraining = "smoke/train-small.json";  // sequences of 32 tokens
  check(kSmallTraining, "/model/learned_positions", "31",
        ": /workload/sequence_length: sequences of 32 tokens are longer than the 31 positions that "
        "deepseek-v3 (changed) has learned");
  CHECK(refusal(kSmallTraining, "/model/learned_positions", "32") == "");
  check(kSmallTraining, "/model", R"({"base": "llama-3.1-8b", "first_dense": 3})",
        R"(s.json: --set /model/first_dense: "first_dense" counts only with "experts")");
  check(kSmallTraining, "/model", R"({"base": "llama-3.1-8b", "moe_step": 2})",
        R"(s.json: --set /model/moe_step: "moe_step" counts only with "experts")");
}
