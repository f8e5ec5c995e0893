// Families of configurations beside those of hf_families_test.cpp: what is published of their parameters,
// what a token leaves in their cache, what stands in which layer, and what is refused.
#include <string>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/hf_config.h"
#include "models/weights/architecture_text.h"
#include "models/weights/hf_config_text.h"

#include "tests/catch.h"

namespace moebius {
namespace {

Model read_model(const std::string& text) {
  return model_from_hf_config(parse_document(text, "config.json"));
}

// Of a small model of a family, with `keys` behind its sizes; a key that stands twice is an error, so that
// those that differ stand in `keys` alone.
std::string small(const std::string& family, const std::string& keys) {
  return fmt::format(R"({{"model_type": "{}", "num_hidden_layers": 4, "hidden_size": 64,
"num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 32{}}})",
                     family, keys);
}

Model small_of(const std::string& family, const std::string& keys = "") {
  return read_model(small(family, keys));
}

std::string refusal_of(const std::string& text) {
  try {
    read_model(text);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "";
}

std::string with_layer_types(const std::string& kinds) {
  return R"(, "sliding_window": 16, "layer_types": [)" + kinds + "]";
}

struct PublishedFamily {
  const char* name;
  const char* config;
  double parameters;  // exact ones are "safetensors.total" of the hub, rounded ones of the card or report
  double kv_bytes;    // of a token in BF16: layers x 2 x key-value heads x width of a head x 2
};

}  // namespace

TEST_CASE("later families of configurations have the parameters and the cache that are published of them") {
  const PublishedFamily rows[] = {
      {"GLM-4 9B, Hugging Face's own class and its defaults",
       R"({"model_type": "glm", "num_hidden_layers": 40, "hidden_size": 4096, "num_attention_heads": 32,
"intermediate_size": 13696, "vocab_size": 151552})",
       9399951360.0, 40960},
      {"ChatGLM3 6B",
       R"({"model_type": "chatglm", "num_layers": 28, "hidden_size": 4096, "num_attention_heads": 32,
"kv_channels": 128, "multi_query_attention": true, "multi_query_group_num": 2, "ffn_hidden_size": 13696,
"padded_vocab_size": 65024, "add_qkv_bias": true})",
       6243584000.0, 28672},
      {"GLM-4 9B 0414",
       R"({"model_type": "glm4", "num_hidden_layers": 40, "hidden_size": 4096, "num_attention_heads": 32,
"intermediate_size": 13696, "vocab_size": 151552, "attention_bias": false})",
       9.4e9, 40960},
      {"Gemma 2B",
       R"({"model_type": "gemma", "num_hidden_layers": 18, "hidden_size": 2048, "num_attention_heads": 8,
"num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384})",
       2506172416.0, 18432},
      {"OLMo 2 13B",
       R"({"model_type": "olmo2", "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40,
"intermediate_size": 13824, "vocab_size": 100352})",
       13716198400.0, 819200},
      {"OLMo 3 32B",
       R"({"model_type": "olmo3", "num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 40,
"num_key_value_heads": 8, "intermediate_size": 27648, "vocab_size": 100278,
"max_position_embeddings": 65536})",
       32233522176.0, 262144},
      {"InternLM2.5 20B",
       R"({"model_type": "internlm2", "num_hidden_layers": 48, "hidden_size": 6144,
"num_attention_heads": 48, "num_key_value_heads": 8, "intermediate_size": 16384, "vocab_size": 92544,
"bias": false})",
       19861149696.0, 196608},
      {"InternLM3 8B",
       R"({"model_type": "internlm3", "num_hidden_layers": 48, "hidden_size": 4096,
"num_attention_heads": 32, "num_key_value_heads": 2, "intermediate_size": 10240, "vocab_size": 128512})",
       8.8e9, 49152},
      {"Baichuan2 7B",
       R"({"model_type": "baichuan", "num_hidden_layers": 32, "hidden_size": 4096,
"num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 125696})",
       7.5e9, 524288},
      {"Baichuan2 13B",
       R"({"model_type": "baichuan", "num_hidden_layers": 40, "hidden_size": 5120,
"num_attention_heads": 40, "intermediate_size": 13696, "vocab_size": 125696})",
       13.9e9, 819200},
      {"Grok-2",
       R"({"model_type": "git", "num_hidden_layers": 64, "hidden_size": 8192, "num_attention_heads": 64,
"num_key_value_heads": 8, "intermediate_size": 32768, "moe_intermediate_size": 16384,
"num_local_experts": 8, "num_experts_per_tok": 2, "residual_moe": true, "vocab_size": 131072})",
       269515497472.0, 262144},
      {"Aya Expanse 8B's sizes, those of Command R7B",
       R"({"model_type": "cohere2", "num_hidden_layers": 32, "hidden_size": 4096,
"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 256000})",
       8028033024.0, 131072},
      {"StableLM 2 12B",
       R"({"model_type": "stablelm", "num_hidden_layers": 40, "hidden_size": 5120,
"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 13824, "vocab_size": 100352,
"qk_layernorm": true, "use_parallel_residual": true})",
       12.14e9, 204800},
      {"StableLM 2 1.6B",
       R"({"model_type": "stablelm", "num_hidden_layers": 24, "hidden_size": 2048,
"num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 5632, "vocab_size": 100352,
"use_qkv_bias": true})",
       1.64e9, 196608},
      {"SmolLM3 3B, its tables and heads as its class has them",
       R"({"model_type": "smollm3", "num_hidden_layers": 36, "hidden_size": 2048,
"num_attention_heads": 16, "intermediate_size": 11008, "vocab_size": 128256})",
       3075098624.0, 73728},
      {"Granite 3.1 3B-A800M",
       R"({"model_type": "granitemoe", "num_hidden_layers": 32, "hidden_size": 1536,
"num_attention_heads": 24, "num_key_value_heads": 8, "intermediate_size": 512, "num_local_experts": 40,
"num_experts_per_tok": 8, "vocab_size": 49155, "tie_word_embeddings": true})",
       3.3e9, 65536},
      {"EXAONE 4.0 1.2B",
       R"({"model_type": "exaone4", "num_hidden_layers": 30, "hidden_size": 2048,
"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 4096, "vocab_size": 102400,
"tie_word_embeddings": true, "sliding_window": null})",
       1.28e9, 61440},
      {"Apertus 8B",
       R"({"model_type": "apertus", "num_hidden_layers": 32, "hidden_size": 4096,
"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 21504, "vocab_size": 131072})",
       8.05e9, 131072},
      {"Apertus 70B",
       R"({"model_type": "apertus", "num_hidden_layers": 80, "hidden_size": 8192,
"num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 43008, "vocab_size": 131072})",
       70.6e9, 327680},
      {"ERNIE 4.5 0.3B",
       R"({"model_type": "ernie4_5", "num_hidden_layers": 18, "hidden_size": 1024,
"num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 3072,
"vocab_size": 103424, "tie_word_embeddings": true})",
       0.36e9, 18432},
      {"Phi-3.5-MoE",
       R"({"model_type": "phimoe", "num_hidden_layers": 32, "hidden_size": 4096,
"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 6400, "num_local_experts": 16,
"num_experts_per_tok": 2, "attention_bias": true, "vocab_size": 32064})",
       41.9e9, 131072},
  };
  for (const PublishedFamily& row : rows) {
    INFO(row.name);
    const Model model = read_model(row.config);
    CHECK(model.unsupported == "");
    CHECK(count_parameters(model).total() == Approx(row.parameters).epsilon(0.005));
    CHECK(2 * kv_elements_per_token(model) == row.kv_bytes);
  }
}

// MiMo-7B's checkpoint has 7.83B with its module.
TEST_CASE("MiMo predicts a further token beside layers of Qwen2's kind") {
  const Model model = read_model(R"({"model_type": "mimo", "num_hidden_layers": 36, "hidden_size": 4096,
"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 11008, "vocab_size": 151680,
"attention_bias": true, "num_nextn_predict_layers": 1})");
  const ParameterCount count = count_parameters(model);
  CHECK(model.biases == Biases::kQkv);
  CHECK(count.total() + count.mtp == Approx(7.83e9).epsilon(0.005));
}

// Granite 4.0 Micro has every parameter of its checkpoint: 40 layers, an MLP that the file calls shared.
TEST_CASE("Granite 4 is read where all its layers attend") {
  std::string kinds;
  for (int layer = 0; layer < 40; ++layer) kinds += layer == 0 ? "\"attention\"" : ", \"attention\"";
  const std::string sizes = R"({"model_type": "granitemoehybrid", "num_hidden_layers": 40,
"hidden_size": 2560, "num_attention_heads": 40, "num_key_value_heads": 8, "vocab_size": 100352,
"intermediate_size": 8192, "shared_intermediate_size": 8192, "num_local_experts": 0,
"tie_word_embeddings": true)";
  const Model micro =
      read_model(sizes + R"(, "position_embedding_type": "rope", "layer_types": [)" + kinds + "]}");
  CHECK(micro.unsupported == "");
  CHECK(count_parameters(micro).total() == 3402836480.0);
  CHECK(2 * kv_elements_per_token(micro) == 81920);
  CHECK(micro.rotates(0));
  const Model still =
      read_model(sizes + R"(, "position_embedding_type": "nope", "layer_types": [)" + kinds + "]}");
  CHECK_FALSE(still.rotates(0));
  CHECK(read_model(sizes + "}").unsupported == "state-space layers: some layers are Mamba-2");
}

TEST_CASE("layers that see all tokens turn neither queries nor keys where windows lie between them") {
  for (const std::string family : {"cohere2", "exaone4"}) {
    INFO(family);
    const Model model = small_of(family, R"(, "num_key_value_heads": 2, "sliding_window": 16)");
    for (int layer = 0; layer < 4; ++layer) {
      CHECK(model.rotates(layer) == (layer < 3));
      CHECK(model.window(layer) == (layer < 3 ? 16 : 0));
    }
    const Model half = small_of(family, R"(, "num_key_value_heads": 2)" +
                                            with_layer_types(R"("sliding_attention", "full_attention",
"sliding_attention", "full_attention")"));
    CHECK(half.no_rotary_every == 2);
    CHECK(half.window(1) == 0);
    CHECK(half.window(2) == 16);
  }
  // OLMo 3 turns all its layers.
  const Model olmo = small_of("olmo3", R"(, "sliding_window": 16)");
  CHECK(olmo.num_windowed_layers() == 3);
  CHECK(olmo.rotates(3));
}

TEST_CASE("EXAONE 4 says its windows by a number, a word or none") {
  const auto of = [](const std::string& keys) {
    return small_of("exaone4", R"(, "num_key_value_heads": 2)" + keys);
  };
  const Model none = of(R"(, "sliding_window": null)");  // 1.2B
  CHECK(none.num_windowed_layers() == 0);
  CHECK(none.rotates(3));
  CHECK(of(R"(, "sliding_window": 16, "sliding_window_pattern": "LG")").no_rotary_every == 2);
  CHECK(of(R"(, "sliding_window": 16, "sliding_window_pattern": 2)").no_rotary_every == 2);
  CHECK(of(R"(, "sliding_window": 16, "sliding_window_pattern": "LGGL")").unsupported ==
        "sliding_window_pattern \"LGGL\"");
  CHECK(none.qk_norm == QkNorm::kPerHead);
}

TEST_CASE("SmolLM3's layers that do not turn are every n-th of a list or an interval") {
  const auto of = [](const std::string& keys) { return small_of("smollm3", keys); };
  CHECK(of("").no_rotary_every == 4);
  CHECK(of(R"(, "no_rope_layer_interval": 2)").no_rotary_every == 2);
  CHECK(of(R"(, "no_rope_layers": [1, 0, 1, 0])").no_rotary_every == 2);
  CHECK(of(R"(, "no_rope_layers": [1, 1, 1, 1])").no_rotary_every == 0);
  CHECK(of(R"(, "no_rope_layers": [0, 1, 1, 1])").unsupported ==
        "layers that do not turn otherwise than every n-th, counted from the first");
  CHECK(of(R"(, "use_sliding_window": true, "sliding_window": 16)").unsupported ==
        "sliding windows in the layers alone that do not turn");
}

TEST_CASE("families have the norms, biases and blocks of their modelling code") {
  CHECK(small_of("olmo2").qk_norm == QkNorm::kPerLayer);
  CHECK_FALSE(small_of("olmo2").note.empty());
  CHECK(small_of("glm", R"(, "num_key_value_heads": 2, "head_dim": 16)").biases == Biases::kQkv);
  CHECK(small_of("glm", R"(, "num_key_value_heads": 2, "head_dim": 16)").rotary_dim == 8);
  CHECK(small_of("internlm2").biases == Biases::kQkv);  // its class's default, which no published file keeps
  CHECK(small_of("internlm3", R"(, "qkv_bias": true)").biases == Biases::kQkv);
  CHECK(small_of("internlm3", R"(, "qkv_bias": true, "bias": true)").biases == Biases::kAll);
  CHECK(small_of("internlm3", R"(, "bias": true)").unsupported ==
        "biases of MLPs without those of attention");
  CHECK(small_of("granite", R"(, "mlp_bias": true)").unsupported ==
        "biases of MLPs without those of attention");
  const Model apertus = small_of("apertus");
  CHECK_FALSE(apertus.gated);
  CHECK(apertus.qk_norm == QkNorm::kPerHead);
  const Model stable = small_of("stablelm", R"(, "num_key_value_heads": 4)");
  CHECK(stable.layer_norm);
  CHECK(stable.rotary_dim == 4);  // a quarter of 16
  CHECK(stable.parallel_block == ParallelBlock::kNone);
  CHECK(small_of("stablelm", R"(, "num_key_value_heads": 4, "use_parallel_residual": true)").parallel_block ==
        ParallelBlock::kOneNorm);
  CHECK(small_of("gemma", R"(, "num_key_value_heads": 4)").tied_embeddings);
  CHECK(small_of("baichuan").note == "slopes on scores (ALiBi), where rotary positions stand in");
  CHECK(small_of("granitemoeshared", R"(, "num_local_experts": 4, "num_experts_per_tok": 2,
"shared_intermediate_size": 48)")
            .experts.shared_width == 48);
  const Model dense = small_of("qwen3_5_text", R"(, "num_key_value_heads": 2, "head_dim": 16,
"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
"linear_value_head_dim": 8)");
  CHECK(dense.experts.routed == 0);
  CHECK(dense.num_attention_layers() == 1);
  CHECK(dense.output_gate);
  CHECK(small_of("dots1", R"(, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
"scoring_func": "noaux_tc")")
            .experts.score == GateScore::kSigmoid);
  CHECK(small_of("bailing_moe", R"(, "num_key_value_heads": 2, "num_experts": 8, "num_experts_per_tok": 2,
"moe_intermediate_size": 8, "partial_rotary_factor": 0.5)")
            .rotary_dim == 8);
}

TEST_CASE("layers that a model has no way for are named") {
  struct Row {
    const char* family;
    const char* keys;
    const char* reason;
  };
  const std::string experts = R"(, "num_experts": 8, "num_experts_per_tok": 2, "num_local_experts": 8,
"num_experts_per_token": 2, "moe_intermediate_size": 8, "num_key_value_heads": 2, "kv_lora_rank": 16,
"qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_group": 1, "topk_group": 1)";
  const Row rows[] = {
      {"jamba", "", "state-space layers: most layers are Mamba"},
      {"nemotron_h", "", "state-space layers: most layers are Mamba-2"},
      {"kimi_linear", "",
       "linear attention: most layers are Kimi delta attention, others latent attention"},
      {"minimax_m1", "", "linear attention: most layers are lightning attention"},
      {"bailing_moe_linear", "", "linear attention: most layers are lightning attention"},
      {"mimo_v2_flash", "",
       "layers with windows have heads of other shapes than those without (swa_head_dim)"},
      {"arctic", R"(, "moe_layer_frequency": 1, "parallel_attn_mlp_res": true)",
       "experts beside attention and a dense MLP of their own (parallel_attn_mlp_res)"},
  };
  for (const Row& row : rows) {
    INFO(row.family);
    CHECK(small_of(row.family, experts + row.keys).unsupported == row.reason);
  }
  // Snowflake says 480B, 17B of them active.
  const Model arctic = read_model(R"({"model_type": "arctic", "num_hidden_layers": 35, "hidden_size": 7168,
"num_attention_heads": 56, "num_key_value_heads": 8, "intermediate_size": 4864, "num_local_experts": 128,
"num_experts_per_tok": 2, "moe_layer_frequency": 1, "parallel_attn_mlp_res": true, "vocab_size": 32000})");
  CHECK(count_parameters(arctic).total() == Approx(480e9).epsilon(0.005));
}

TEST_CASE("what a file of these families lacks or says twice over stands where the file has it") {
  const std::string chatglm = R"({"model_type": "chatglm", "num_layers": 2, "hidden_size": 4096,
"num_attention_heads": 32, "padded_vocab_size": 100, "multi_query_attention": true,
)";
  CHECK_THAT(refusal_of(chatglm + R"("inner_hidden_size": 16384})"),
             Catch::Contains("ffn_hidden_size"));  // ChatGLM-6B, the first one
  CHECK(refusal_of(chatglm + R"("ffn_hidden_size": 64, "multi_query_group_num": 5})") ==
        "config.json:3: /multi_query_group_num: num_attention_heads 32 are not divisible by "
        "multi_query_group_num 5");
  CHECK(small_of("chatglm", R"(, "num_layers": 2, "ffn_hidden_size": 32, "kv_channels": 16,
"apply_residual_connection_post_layernorm": true)")
            .unsupported ==
        "residuals that begin behind norms (apply_residual_connection_post_layernorm)");
  CHECK_THAT(refusal_of(small("smollm3", R"(, "no_rope_layers": [1, 0])")),
             Catch::EndsWith("/no_rope_layers: expected a number for each of 4 layers, found 2"));
  CHECK_THAT(refusal_of(small("smollm3", R"(, "no_rope_layers": [1, 2, 1, 1])")),
             Catch::EndsWith("/no_rope_layers: expected integers from 0 to 1, found 2"));
  CHECK_THAT(refusal_of(small("smollm3", R"(, "no_rope_layer_interval": 0)")),
             Catch::Contains("/no_rope_layer_interval: expected an integer"));
  CHECK_THAT(refusal_of(small("cohere2", with_layer_types(R"("full_attention")"))),
             Catch::EndsWith("/layer_types: expected a kind for each of 4 layers, found 1"));
  CHECK_THAT(refusal_of(small("grok-1", R"(, "num_key_value_heads": 2, "num_experts": 8,
"num_experts_per_tok": 9)")),
             Catch::EndsWith("/num_experts_per_tok: active experts 9 are more than routed experts 8"));
  CHECK_THAT(refusal_of(small("grok-1", R"(, "num_experts": 8, "num_experts_per_tok": 2)")),
             Catch::Contains("num_key_value_heads"));
  CHECK_THAT(refusal_of(R"({"model_type": "git", "hidden_size": 768, "num_hidden_layers": 6,
"num_attention_heads": 12, "num_key_value_heads": 12, "vocab_size": 30522})"),
             Catch::Contains("num_local_experts"));  // Microsoft's GIT
}

TEST_CASE("layers that do not turn are written as a catalog and as Hugging Face have them") {
  const Model model = small_of("smollm3");
  const std::string text = architecture_text(model);
  CHECK_THAT(text, Catch::Contains(R"("no_rotary_every": 4)"));
  const Document document = parse_document(text, "text");
  CHECK(architecture_of(document.root, {.file = "text", .pointer = "", .line = 1}).no_rotary_every == 4);
  const std::string config = hf_config_text(model, WeightNaming::kShared);
  CHECK_THAT(config, Catch::Contains(R"("model_type": "smollm3")"));
  CHECK(read_model(config).no_rotary_every == 4);
  // No family that spells weights so has windows beside layers that do not turn.
  CHECK(hf_config_text(small_of("exaone4", R"(, "num_key_value_heads": 2, "sliding_window": 16)"),
                       WeightNaming::kShared) == "");
}

TEST_CASE("a layer of a stage turns or not by its number in the whole model") {
  const Model model = small_of("smollm3");
  CHECK_FALSE(stage_of(model, 2, 2).rotates(1));
  CHECK(stage_of(model, 2, 2).rotates(0));
  Model learned = model;
  learned.learned_positions = 64;
  const auto found = inconsistency(learned);
  REQUIRE(found.has_value());
  CHECK(found->key == "no_rotary_every");
  CHECK(found->sentence ==
        "no_rotary_every 4 takes rotary positions off, where they are learned (learned_positions 64)");
}

}  // namespace moebius
