// What software before fused kernels did is asked for wrongly, and measured figures are told wrongly.
#include "tests/invalid/refusals.h"
#include "workloads/job.h"
#include "workloads/measured_stacks.h"

namespace moebius {

TEST_CASE("kernels of attention and accumulation are names and dropout is a share") {
  check(
      kTraining,
      {
          {"/plan/attention", "fused",
           R"(/plan/attention: expected one of "flash", "unfused", found "fused" (did you mean "unfused"?))"},
          {"/plan/precision/accumulation", "apart",
           R"(/plan/precision/accumulation: expected one of "fused", "separate", found "apart")"},
          {"/plan/loss", "apart",
           R"(/plan/loss: expected one of "fused", "separate", "autocast", found "apart")"},
          {"/plan/elementwise", "compiled",
           R"(/plan/elementwise: expected one of "fused", "eager", found "compiled")"},
          {"/plan/norms", "apart", R"(/plan/norms: expected one of "fused", "separate", found "apart")"},
          {"/plan/optimizer", "apart",
           R"(/plan/optimizer: expected one of "fused", "separate", found "apart")"},
          {"/plan/ep/kernels", "apart",
           R"(/plan/ep/kernels: expected one of "fused", "separate", found "apart")"},
          {"/plan/ep/products", "single",
           R"(/plan/ep/products: expected one of "grouped", "each", "modules", found "single")"},
          {"/plan/overlap/tensor_sms", "-1",
           R"(/plan/overlap/tensor_sms: expected an integer from 0 to 4096, found -1)"},
          {"/workload/dropout", "1", R"(/workload/dropout: expected a number from 0 to 0.99, found 1)"},
          {"/plan/recompute/whole_layers", "true",
           R"(/plan/recompute/whole_layers: whole layers are for policy "full" only)"},
          {"/plan/recompute/early_stop", "true",
           R"(/plan/recompute/early_stop: recomputation that stops early is for policy "full" only)"},
          {"/plan/tp/buffers", "copied",
           "/plan/tp/buffers: copies are of gathers and sums of sequence_parallel true, in one piece and of "
           "one degree"},
      });
}

TEST_CASE("modules of experts have no biases, and magnitudes meet where all replicas run as much") {
  CHECK(
      refusal("validate/megatron-bridge/gpt-oss-120b-h100.json", {{"/plan/ep/products", "modules"}}) ==
      "s.json: --set /plan/ep/products: the experts of gpt-oss-120b have biases, which modules are not told "
      "with: expected \"grouped\" or \"each\", found \"modules\"");
  CHECK_THAT(
      refusal("validate/mlperf/gpt3-h100-512-v4.0.json", {{"/plan/pp/schedule", "1f1b"},
                                                          {"/plan/pp/virtual", "1"},
                                                          {"/plan/dp/microbatches", "auto"},
                                                          {"/plan/precision/history", "stage"}}),
      Catch::Contains("all replicas of a stage meet in every pass, but they run unequal numbers of "
                      "microbatches: expected \"tensor\" with /plan/dp/microbatches, found \"stage\""));
}

TEST_CASE("kernels of biases are of models that have some") {
  const char* dense = "validate/modellink/llama2-7b.json";
  CHECK(refusal(dense, {{"/plan/biases", "apart"}}) ==
        "s.json: --set /plan/biases: queries, keys and values of llama-2-7b have no biases: expected "
        "\"fused\", found \"apart\"");
  CHECK(refusal(dense, {{"/plan/biases", "fused"}}) == "");
  CHECK(refusal("validate/modellink/qwen15-32b.json", {{"/plan/biases", "summed-apart"}}) == "");
}

TEST_CASE("what runs operation by operation is fused with nothing") {
  CHECK(refusal(kTraining, {{"/plan/elementwise", "eager"}, {"/plan/fusion", R"(["router", "residual"])"}}) ==
        "s.json: --set /plan/fusion: what runs operation by operation has no neighbour in its kernel: "
        "elementwise "
        "\"eager\" goes with \"router\" alone, found 1 more");
  CHECK_THAT(refusal(kTraining, {{"/plan/elementwise", "eager"}, {"/plan/precision/fused_quantise", "true"}}),
             Catch::StartsWith("s.json: --set /plan/precision/fused_quantise: norms and activations that run "
                               "operation by operation write no 8-bit operands"));
  CHECK(refusal(kTraining, {{"/plan/elementwise", "eager"},
                            {"/plan/fusion", R"(["router"])"},
                            {"/plan/precision/fused_quantise", "false"}}) == "");
}

TEST_CASE("modules that are captured are names of what the model has and graphs can hold") {
  const auto refused = [](const char* file, const char* modules,
                          std::vector<std::pair<const char*, const char*>> more = {}) {
    more.emplace_back("/plan/launch", "eager");
    more.emplace_back("/plan/captured", modules);
    return refusal(file, more);
  };
  const std::string at = "s.json: --set /plan/captured: ";
  const char *dense = "validate/modellink/llama2-7b.json",
             *routed = "validate/megatron-bridge/qwen3-30b-h100-fp8.json";
  CHECK(refused(routed, R"(["attn", "moe_router", "moe_preprocess"])") == "");
  CHECK(refused(routed, "[]") == "");
  CHECK(refused(routed, R"(["attn", "moe"])", {{"/plan/ep/capacity", "1.25"}}) == "");
  CHECK(refused(dense, R"(["attn", "mlp"])") == "");
  CHECK_THAT(refused(routed, R"(["mamba"])"),
             Catch::StartsWith(at + R"(expected names out of "attn", "mlp", "moe", "moe_router", )"
                                    R"("moe_preprocess", found "mamba")"));
  CHECK(refused(routed, R"(["attn", "attn"])") == at + R"(expected different names, found "attn" twice)");
  CHECK(refused(routed, R"(["mlp"])") ==
        at + "modules are captured of layers without experts, of which qwen3-30b-a3b has none");
  CHECK(refused(dense, R"(["moe_router"])") ==
        at + "modules are captured of layers with experts, of which llama-2-7b has none");
  CHECK(refused(routed, R"(["moe_preprocess"])") ==
        at + R"("moe_preprocess" goes with "moe_router", found it without)");
  CHECK(refused(routed, R"(["moe", "moe_router"])", {{"/plan/ep/capacity", "1.25"}}) ==
        at + R"("moe" has "moe_router" and "moe_preprocess" in it: expected it alone or those)");
  CHECK(refused(routed, R"(["moe"])") ==
        at + R"(rows of experts are not known beforehand: "moe" needs a limit in /plan/ep/capacity, )"
             "found 0");
  CHECK(refused(routed, R"(["attn"])", {{"/plan/recompute", R"({"policy": "full"})"}}) ==
        at + "layers that run again as a whole are in no graph of a module: expected /plan/recompute/policy "
             R"("none" or "selective")");
  for (const std::string launch : {"hidden", "graph"})
    CHECK(refusal(routed, {{"/plan/launch", launch.c_str()}, {"/plan/captured", R"(["attn"])"}}) ==
          at + R"(graphs of modules are for launch "kernel" or "eager", found ")" + launch + "\"");
}

TEST_CASE("buffers are filled up to a capacity, and sent by an exchange that knows of no less") {
  const char* routed = "validate/megatron-bridge/qwen3-30b-h100-fp8.json";  // by the library's all-to-all
  const std::string at = "s.json: --set /plan/ep/";
  const auto refused = [&](std::vector<std::pair<const char*, const char*>> more) {
    more.emplace_back("/plan/ep/capacity", "1.25");
    return refusal(routed, more);
  };
  for (const char* buffers : {"rows", "padded", "one-hot"})
    for (const char* tokens : {"microbatch", "sequence"})
      CHECK(refused({{"/plan/ep/buffers", buffers}, {"/plan/ep/capacity_of", tokens}}) == "");
  CHECK(refusal(routed, "/plan/ep/buffers", "rows") == "");
  for (const char* buffers : {"padded", "one-hot"})
    CHECK(refusal(routed, "/plan/ep/buffers", buffers) ==
          at + "buffers: buffers are filled up to a `capacity` above 0, found 0");
  CHECK(refusal(routed, "/plan/ep/capacity_of", "sequence") ==
        at + R"(capacity_of: "capacity_of" counts only with a "capacity")");
  for (const char* dispatch : {"deepep", "all-gather", "auto"})
    CHECK(refused({{"/plan/ep/buffers", "padded"}, {"/plan/ep/dispatch", dispatch}}) ==
          at + "buffers: buffers of fixed sizes travel by the library's all-to-all: expected "
               "/plan/ep/dispatch \"all-to-all\", found \"" +
              dispatch + "\"");
  CHECK_THAT(refused({{"/plan/ep/buffers", "full"}}), Catch::Contains("found \"full\""));
  CHECK(refusal(routed, {{"/plan/ep/buffers", "padded"},
                         {"/plan/ep/capacity", "1024"},
                         {"/workload/micro_batch", "16"}}) ==
        at + "capacity: 128 experts take 4194304 rows each of each of 8 ranks: expected at most 2147483647 "
             "rows in all, found 4294967296");
}

// The sentence with which measured kernels are refused; empty when they are there.
static std::string refused_kernels(const char* json) {
  Document document = base(kTraining);
  set_at_pointer(document, "/cluster/kernels", json);
  const Scenario scenario = read_scenario(document, Catalog(), ModelCatalog());
  try {
    check_stacks(scenario, "");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("kernels are those of software that was measured on the chips") {
  const std::string at = "s.json: --set /cluster/kernels: ";
  CHECK(refused_kernels("\"infersim-2025\"").empty());
  CHECK(refused_kernels("\"infersim-2025; gemm/fp8=deepgemm-2025-04-09\"").empty());
  CHECK_THAT(refused_kernels("\"vllm-0.20.0\""),
             Catch::StartsWith(at + "expected software whose kernels are measured on h800-sxm (") &&
                 Catch::EndsWith(", found \"vllm-0.20.0\""));
  CHECK_THAT(refused_kernels("\"infersim-2026\""), Catch::EndsWith("(did you mean \"infersim-2025\"?)"));
  CHECK(refused_kernels("\"; gem/fp8=infersim-2025\"") ==
        at + "expected a kind of op, found \"gem\" (did you mean \"gemm\"?)");
  CHECK(refused_kernels("\"; gemm/fp9=infersim-2025\"") ==
        at + "expected a number format, as \"bf16\" or \"fp8\", found \"fp9\"");
  CHECK(refused_kernels("\"; gemm\"") ==
        at + "expected KIND/DTYPE=STACK (\"gemm/fp8=trtllm-1.3.0rc20\"), found \"gemm\"");
}

TEST_CASE("gradients that are cut over replicas have no sum to add to") {
  CHECK(
      refusal(kTraining, {{"/plan/dp/zero", "2"},
                          {"/plan/pp/schedule", "1f1b"},
                          {"/plan/precision/accumulation", "separate"}}) ==
      "s.json: --set /plan/precision/accumulation: \"separate\" adds to whole gradients, which zero 2 cuts: "
      "expected /plan/dp/zero 0 or 1, or /plan/dp/accumulate \"whole\"");
}

TEST_CASE("pages of a model that attends in chunks divide them, and its prompts are whole") {
  CHECK(refusal("smoke/serve-chunked.json", "/plan/cache/block_tokens", "6") ==
        "s.json: --set /plan/cache/block_tokens: pages of 6 tokens do not divide the chunks of 16 in which "
        "llama-4-scout (changed) attends");
  Document apart = base(kApart);
  set_at_pointer(apart, "/model", "llama-4-scout");
  set_at_pointer(apart, "/plan/prefill/attention/cp", "2");
  CHECK_THAT(refusal(apart), Catch::Contains("cp 2 cuts prompts, of which llama-4-scout attends in chunks: "
                                             "expected cp 1"));
}

TEST_CASE("unfused attention sees whole sequences") {
  CHECK(
      refusal(kTraining, {{"/plan/cp", "2"}, {"/plan/attention", "unfused"}}) ==
      R"(s.json: --set /plan/attention: "unfused" attention sees whole sequences: expected /plan/cp 1, found 2)");
}

TEST_CASE("pieces beside their products hold no cores") {
  Document document = base("smoke/train-tensor.json");
  set_at_pointer(document, "/plan/tp/overlap", "true");
  set_at_pointer(document, "/plan/overlap/tensor_sms", "24");
  CHECK(refusal(document) ==
        "s.json: --set /plan/overlap/tensor_sms: pieces of /plan/tp/overlap travel by copy engines: expected "
        "0 cores "
        "with it, found 24");
}

TEST_CASE("a known difference has its reason") {
  CHECK(refusal(
            kTraining,
            {{"/expect", "[]"},
             {"/expect/-", R"({"metric": "mfu", "value": 1, "source": "none", "known_difference": 0.1})"}}) ==
        "s.json: --set /expect/0/known_difference: expected a reason in `known_miss`, found none");
}

TEST_CASE("kernels of a document that is no file are looked up as well") {
  const Library library("");
  Document document = parse_document(
      R"({"moebius": 1, "kind": "training", "name": "t", "model": "llama-3.1-8b",
    "cluster": {"kernels": "trtllm-1.3.0rc20; gemmm/bf16=sglang-0.5.14", "pools": [{"name": "a",
    "accelerator": "h100-sxm", "node": "hgx-8", "nodes": 1}], "fabric": {"type": "rail-optimised-clos"}},
    "workload": {"sequence_length": 512, "global_batch": 8}})",
      "t.json");
  CHECK_THROWS_WITH(read_job(std::move(document), {}, library),
                    Catch::Contains("expected a kind of op, found \"gemmm\""));
}

}  // namespace moebius
