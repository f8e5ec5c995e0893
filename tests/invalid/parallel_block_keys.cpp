// What a scenario may not ask of a model whose layers run attention and MLP side by side.
#include "tests/invalid/refusals.h"

namespace {

using namespace moebius;

const char* const kTrainSmall = "smoke/train-small.json";
const char* const kExpertsApart = "smoke/serve-afd.json";

std::string trained(const char* model, const char* recompute) {
  return moebius::refusal(kTrainSmall,
                          {{"/model", model}, {"/plan/ep/degree", "1"}, {"/plan/recompute", recompute}});
}

}  // namespace

TEST_CASE("attention beside an MLP is of one norm or of two, of mha or gqa and a dense MLP") {
  const auto described = [](const char* model) { return refusal(kSmall, "/model", model); };
  CHECK_THAT(described(R"({"base": "llama-2-7b", "parallel_block": "one norm"})"),
             Catch::Contains("/model/parallel_block") && Catch::Contains("\"two_norms\""));
  CHECK_THAT(described(R"({"base": "llama-2-7b", "parallel_block": 2})"),
             Catch::Contains("/model/parallel_block"));
  CHECK_THAT(
      described(R"({"base": "mixtral-8x7b", "parallel_block": true})"),
      Catch::EndsWith("/model/parallel_block: attention stands beside a dense MLP, found 8 routed experts"));
  CHECK_THAT(described(R"({"base": "deepseek-v3", "parallel_block": "two_norms"})"),
             Catch::EndsWith("/model/parallel_block: mha or gqa attention stands beside an MLP, not mla"));
  CHECK_THAT(described(R"({"base": "qwen3-next-80b-a3b", "parallel_block": true})"),
             Catch::EndsWith("/model/parallel_block: attention stands beside an MLP, delta networks do not"));
}

TEST_CASE("the one residual stream of a parallel block is kept") {
  const char* const model = R"({"base": "gpt-j-6b", "layers": 2})";
  CHECK(trained(model, R"({"policy": "selective", "ops": ["rmsnorm", "qkv", "mlp_up"]})") == "");
  for (const std::string op : {"attention_out", "mlp_down"})
    CHECK_THAT(trained(model, (R"({"policy": "selective", "ops": [")" + op + "\"]}").c_str()),
               Catch::EndsWith("the layers of gpt-j-6b (changed) have one residual stream each, which is "
                               "kept: expected other ops, found \"" +
                               op + "\""));
}

TEST_CASE("an MLP that reads what attention reads does not stand on devices of its own") {
  CHECK(refusal(kExpertsApart, "/model", "llama-3.1-8b") == "");
  CHECK_THAT(refusal(kExpertsApart, "/model", R"({"base": "llama-3.1-8b", "parallel_block": true})"),
             Catch::EndsWith("/plan/decode: attention and MLP of llama-3.1-8b (changed) read the same rows: "
                             "its MLPs do not stand apart from attention"));
}
