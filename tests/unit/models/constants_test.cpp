// Constants of the arithmetic, out of config.json.
#include "models/constants.h"

#include <cmath>

#include <catch2/catch.hpp>

namespace moebius {
namespace {

Constants of(const std::string& text) {
  return constants_from_hf_config(parse_document(text, "config.json"));
}

}  // namespace

TEST_CASE("a configuration that says nothing has the usual constants") {
  CHECK(of(R"({"hidden_size": 64, "num_attention_heads": 4})") == Constants{});
}

TEST_CASE("base and epsilon are read, in the form of old and of new configurations") {
  const Constants old = of(R"({"hidden_size": 64, "rope_theta": 10000000, "rms_norm_eps": 1e-05})");
  CHECK(old.rotary.base == 1e7);
  CHECK(old.norm_epsilon == 1e-5);
  CHECK(of(R"({"hidden_size": 64, "rope_parameters": {"rope_type": "default", "rope_theta": 1000000}})")
            .rotary.base == 1e6);
}

// DeepSeek-V3: a pair turns n times in L positions where i = d ln(L / 2 pi n) / (2 ln base): 32 times
// at 10.5, once at 22.5, which its code rounds down and up. Both mscales are 1, so that cosines do not grow;
// scores grow by (0.1 ln 40 + 1)^2 = 1.874.
TEST_CASE("DeepSeek-V3's YaRN") {
  const Constants v3 = of(R"({"hidden_size": 7168, "num_attention_heads": 128, "qk_rope_head_dim": 64,
    "rope_theta": 10000, "max_position_embeddings": 163840, "rope_scaling": {"type": "yarn", "factor": 40,
    "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 4096}})");
  CHECK(v3.rotary == Rotary{.base = 10000, .factor = 40, .low = 10, .high = 23, .magnitude = 1});
  CHECK(v3.score_scale == Approx(1.874).epsilon(1e-3));
  // Before `low` a pair turns as ever, from `high` on 40 times as slowly, halfway between by the mean of
  // both.
  CHECK(rotary_frequency(v3.rotary, 10, 64) == Approx(std::pow(10000, -20.0 / 64)));
  CHECK(rotary_frequency(v3.rotary, 23, 64) == Approx(std::pow(10000, -46.0 / 64) / 40));
  CHECK(rotary_frequency({.factor = 4, .low = 0, .high = 2}, 1, 4) == Approx(0.01 * (0.5 + 0.5 / 4)));
}

TEST_CASE("YaRN without mscales lets cosines grow: Qwen3's long texts") {
  const Constants qwen = of(R"({"hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128,
    "rope_theta": 1000000, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
    "original_max_position_embeddings": 32768}})");
  CHECK(qwen.rotary.magnitude == Approx(0.1 * std::log(4.0) + 1));
  CHECK(qwen.score_scale == 1);
}

TEST_CASE("linear scaling stretches every pair") {
  const Constants linear = of(R"({"hidden_size": 64, "rope_scaling": {"type": "linear", "factor": 2}})");
  for (const int pair : {0, 3})
    CHECK(rotary_frequency(linear.rotary, pair, 8) == Approx(rotary_frequency({}, pair, 8) / 2));
}

TEST_CASE("what no run computes is said, not ignored") {
  CHECK(of(R"({"hidden_size": 64, "rope_scaling": {"rope_type": "llama3", "factor": 8}})").unsupported ==
        "positions scaled by rope_type \"llama3\"");
  CHECK(of(R"({"hidden_size": 64, "partial_rotary_factor": 0.5})").unsupported.empty());
  CHECK_THROWS_WITH(of(R"({"hidden_size": 64, "rope_theta": "big"})"),
                    Catch::Contains("/rope_theta: expected a number"));
  CHECK_THROWS_WITH(of(R"({"hidden_size": 64, "rope_scaling": 3})"),
                    Catch::Contains("/rope_scaling: expected an object, found 3"));
}

// What weights would be multiplied with otherwise than their family does is told, not computed.
TEST_CASE("multipliers, Gemma's norms and activations other than SiLU are not computed") {
  const auto reason = [](const std::string& keys) {
    return of(R"({"hidden_size": 64, "num_attention_heads": 4, )" + keys + "}").unsupported;
  };
  CHECK(reason(R"("model_type": "granite", "embedding_multiplier": 12.0)") == "embedding_multiplier 12");
  CHECK(reason(R"("model_type": "granite", "residual_multiplier": 0.22)") == "residual_multiplier 0.22");
  CHECK(reason(R"("model_type": "granite", "attention_multiplier": 0.0078125)") ==
        "attention_multiplier 0.0078125");
  CHECK(reason(R"("model_type": "gemma")") ==
        "embeddings times the root of hidden_size, and norms of 1 + weight");
  CHECK(reason(R"("model_type": "llama", "hidden_act": "gelu")") == "hidden_act \"gelu\"");
  CHECK(reason(R"("model_type": "smollm3", "hidden_act": "silu", "logits_scaling": 1.0)") == "");
}

}  // namespace moebius
