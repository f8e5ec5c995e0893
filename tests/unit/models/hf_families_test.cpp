// What is published of the parameters of models, by the sizes of their configurations.
#include "models/hf_config.h"
#include "models/weights/hf_config_text.h"

#include "tests/catch.h"

namespace moebius {
namespace {

Model model_of(const std::string& text) {
  return model_from_hf_config(parse_document(text, "config.json"));
}

}  // namespace

struct PublishedSize {
  const char* name;
  const char* config;
  double parameters, active;
};

// Sizes of the config.json of each repository, and what its card or report says of its parameters.
TEST_CASE("families of configurations have the parameters that are published of them") {
  const PublishedSize rows[] = {
      {"Gemma 3 27B, without its tower",
       R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "head_dim": 128,
"hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32, "num_hidden_layers": 62,
"num_key_value_heads": 16, "sliding_window": 1024}})",
       27.0e9, 0},
      {"Gemma 2 9B",
       R"({"model_type": "gemma2", "head_dim": 256, "hidden_size": 3584, "intermediate_size": 14336,
"num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8, "sliding_window": 4096,
"max_position_embeddings": 8192, "vocab_size": 256000})",
       9.24e9, 0},
      {"Phi-4",
       R"({"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920, "num_attention_heads": 40,
"num_hidden_layers": 40, "num_key_value_heads": 10, "vocab_size": 100352, "sliding_window": null,
"tie_word_embeddings": false})",
       14.66e9, 0},
      {"Phi-3 mini",
       R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 32, "vocab_size": 32064, "sliding_window": 2047,
"max_position_embeddings": 4096, "tie_word_embeddings": false})",
       3.82e9, 0},
      {"StarCoder2 15B",
       R"({"model_type": "starcoder2", "hidden_size": 6144, "intermediate_size": 24576,
"num_attention_heads": 48, "num_hidden_layers": 40, "num_key_value_heads": 4, "vocab_size": 49152,
"sliding_window": 4096, "max_position_embeddings": 16384, "tie_word_embeddings": false})",
       15.96e9, 0},
      {"OPT 66B",
       R"({"model_type": "opt", "hidden_size": 9216, "ffn_dim": 36864, "num_attention_heads": 72,
"num_hidden_layers": 64, "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 9216})",
       65.7e9, 0},
      {"BLOOM",
       R"({"model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "n_head": 112, "vocab_size": 250880})",
       176.2e9, 0},
      {"GPT-J 6B",
       R"({"model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "rotary_dim": 64,
"n_inner": null, "n_positions": 2048, "vocab_size": 50400, "tie_word_embeddings": false})",
       6.05e9, 0},
      {"GPT-NeoX 20B",
       R"({"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
"num_attention_heads": 64, "num_hidden_layers": 44, "rotary_pct": 0.25, "vocab_size": 50432,
"use_parallel_residual": true, "tie_word_embeddings": false})",
       20554567680.0, 0},
      {"Falcon 7B",
       R"({"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32,
"multi_query": true, "parallel_attn": true, "new_decoder_architecture": false, "bias": false,
"alibi": false, "vocab_size": 65024})",
       6.92e9, 0},
      {"Falcon 40B",
       R"({"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128, "num_hidden_layers": 60,
"num_kv_heads": 8, "parallel_attn": true, "new_decoder_architecture": true, "bias": false, "alibi": false,
"vocab_size": 65024})",
       41.3e9, 0},
      {"Command R",
       R"({"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
"num_attention_heads": 64, "num_key_value_heads": 64, "num_hidden_layers": 40, "vocab_size": 256000,
"use_qk_norm": false, "logit_scale": 0.0625})",
       34.98e9, 0},
      {"Phi-2",
       R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_attention_heads": 32,
"num_key_value_heads": 32, "num_hidden_layers": 32, "partial_rotary_factor": 0.4, "vocab_size": 51200,
"tie_word_embeddings": false})",
       2.78e9, 0},
      {"Seed-OSS 36B",
       R"({"model_type": "seed_oss", "hidden_size": 5120, "intermediate_size": 27648,
"num_attention_heads": 80, "num_hidden_layers": 64, "num_key_value_heads": 8, "head_dim": 128,
"vocab_size": 155136, "tie_word_embeddings": false, "attention_bias": true})",
       36.15e9, 0},
      {"dots.llm1",
       R"({"model_type": "dots1", "hidden_size": 4096, "intermediate_size": 10944,
"moe_intermediate_size": 1408, "num_attention_heads": 32, "num_key_value_heads": 32, "num_hidden_layers": 62,
"n_routed_experts": 128, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
"n_group": 1, "topk_group": 1, "vocab_size": 152064, "tie_word_embeddings": false})",
       142e9, 14e9},
      {"DeepSeek MoE 16B",
       R"({"model_type": "deepseek", "hidden_size": 2048, "intermediate_size": 10944,
"moe_intermediate_size": 1408, "num_attention_heads": 16, "num_key_value_heads": 16, "num_hidden_layers": 28,
"n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
"vocab_size": 102400})",
       16.4e9, 2.8e9},
      {"Qwen2.5-VL 7B, without its tower",
       R"({"model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944,
"num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064,
"tie_word_embeddings": false})",
       7.62e9, 0},
      {"Qwen3-VL 30B-A3B, without its tower",
       R"({"model_type": "qwen3_vl_moe", "text_config": {"model_type": "qwen3_vl_moe_text",
"hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_attention_heads": 32,
"num_hidden_layers": 48, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
"num_experts_per_tok": 8, "decoder_sparse_step": 1, "vocab_size": 151936}})",
       30.5e9, 3.3e9},
  };
  for (const PublishedSize& row : rows) {
    INFO(row.name);
    const Model model = model_of(row.config);
    CHECK(model.unsupported.empty());
    CHECK(count_parameters(model).total() == Approx(row.parameters).epsilon(0.006));
    if (row.active > 0) CHECK(active_parameters(model) == Approx(row.active).epsilon(0.03));
  }
}

TEST_CASE("Gemma's windows lie between layers that see all tokens") {
  const char* const sizes = R"("hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
"num_hidden_layers": 12, "num_key_value_heads": 4, "sliding_window": 1024, "vocab_size": 1000})";
  CHECK(model_of(std::string(R"({"model_type": "gemma2", )") + sizes).num_windowed_layers() == 6);
  CHECK(model_of(std::string(R"({"model_type": "gemma3_text", )") + sizes).num_windowed_layers() == 10);
}

TEST_CASE("norms of queries and keys are of each head or of all together, as family and file say") {
  const std::string sizes = R"(, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
"num_key_value_heads": 2, "vocab_size": 100, "intermediate_size": 32, "num_local_experts": 8, "num_experts": 8,
"num_experts_per_tok": 2)";
  const auto norm = [&](const std::string& family, const std::string& keys) {
    return model_of(R"({"model_type": ")" + family + "\"" + sizes + keys + "}").qk_norm;
  };
  CHECK(norm("olmoe", "") == QkNorm::kPerLayer);
  CHECK(norm("qwen3", "") == QkNorm::kPerHead);
  CHECK(norm("minimax_m2", "") == QkNorm::kNone);
  CHECK(norm("minimax_m2", R"(, "use_qk_norm": true)") == QkNorm::kPerLayer);
  CHECK(norm("minimax_m2", R"(, "use_qk_norm": true, "qk_norm_type": "per_head")") == QkNorm::kPerHead);
  const Model other = model_of(R"({"model_type": "minimax_m2")" + sizes +
                               R"(, "use_qk_norm": true, "qk_norm_type": "per_group"})");
  CHECK(other.unsupported == "norms of queries and keys by \"per_group\"");
}

TEST_CASE("families say whether attention and MLP stand side by side, and of how many norms") {
  const std::string sizes = R"(, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
"intermediate_size": 128, "vocab_size": 100)";
  const auto of = [&](const std::string& family, const std::string& keys) {
    return model_of(R"({"model_type": ")" + family + "\"" + sizes + keys + "}");
  };
  CHECK(of("gpt_neox", "").parallel_block == ParallelBlock::kTwoNorms);
  CHECK(of("gpt_neox", "").rotary_dim == 4);  // a quarter of 16
  CHECK(of("gpt_neox", R"(, "use_parallel_residual": false)").parallel_block == ParallelBlock::kNone);
  CHECK(of("cohere", "").parallel_block == ParallelBlock::kOneNorm);
  CHECK(of("phi", "").parallel_block == ParallelBlock::kOneNorm);
  CHECK(of("phi", "").rotary_dim == 8);
  CHECK(of("gptj", R"(, "rotary_dim": 16)").rotary_dim == 0);  // whole heads
  CHECK(of("gptj", R"(, "rotary_dim": 8)").parallel_block == ParallelBlock::kOneNorm);
  CHECK(of("falcon", "").parallel_block == ParallelBlock::kOneNorm);
  CHECK(of("falcon", "").kv_heads == 1);
  CHECK(of("falcon", R"(, "multi_query": false)").kv_heads == 4);
  CHECK(of("falcon", R"(, "parallel_attn": false)").parallel_block == ParallelBlock::kNone);
  const std::string newer = R"(, "new_decoder_architecture": true, "num_kv_heads": 2)";
  CHECK(of("falcon", newer).parallel_block == ParallelBlock::kTwoNorms);
  CHECK(of("falcon", newer).kv_heads == 2);
  CHECK(of("falcon", newer + R"(, "num_ln_in_parallel_attn": 1)").parallel_block ==
        ParallelBlock::kOneNorm);  // Falcon2 11B
}

TEST_CASE("a configuration that is written gives experts their width in the key that the family reads") {
  for (const auto& [name, naming] : {std::pair{"olmoe-1b-7b", WeightNaming::kShared},
                                     {"mixtral-8x7b", WeightNaming::kMixtral},
                                     {"qwen3-30b-a3b", WeightNaming::kShared}}) {
    INFO(name);
    const Model model = ModelCatalog().model(name);
    const std::string config = hf_config_text(model, naming);
    REQUIRE(!config.empty());
    const Model written = model_of(config);
    CHECK(written.experts == model.experts);
    CHECK(written.dense_width == model.dense_width);
    CHECK(written.qk_norm == model.qk_norm);
  }
}

TEST_CASE("the second Ling turns half of each head and chooses among groups where its file does not say") {
  const std::string sizes =
      R"(, "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
"head_dim": 16, "vocab_size": 64, "intermediate_size": 32, "moe_intermediate_size": 32, "num_experts": 32,
"num_experts_per_tok": 8)";
  const auto of = [&](const std::string& type, const std::string& keys) {
    return model_of(R"({"model_type": ")" + type + "\"" + sizes + keys + "}");
  };
  CHECK(of("bailing_moe", "").rotary_dim == 0);
  CHECK(of("bailing_moe", "").experts.groups == 1);
  const Model second = of("bailing_moe_v2", "");
  CHECK(second.rotary_dim == 8);
  CHECK(second.experts.groups == 8);
  CHECK(second.experts.active_groups == 4);
  CHECK(second.experts.score == GateScore::kSigmoid);
  CHECK(of("bailing_moe_v2", R"(, "rotary_dim": 4)").rotary_dim == 4);
  CHECK(of("bailing_moe_v2", R"(, "partial_rotary_factor": 1)").rotary_dim == 0);
  CHECK(of("bailing_moe_v2", R"(, "score_function": "tanh")").unsupported == "gate scores by \"tanh\"");
}

TEST_CASE("what a configuration has in other layers than its family is said") {
  const std::string sizes =
      R"(, "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
"head_dim": 16, "vocab_size": 64, "intermediate_size": 32, "intermediate_size_mlp": 32, "num_local_experts": 8,
"num_experts_per_tok": 1)";
  const auto of = [&](const std::string& type, const std::string& keys) {
    return model_of(R"({"model_type": ")" + type + "\"" + sizes + keys + "}").unsupported;
  };
  CHECK(of("llama4_text", "") == "");
  CHECK(of("llama4_text", R"(, "no_rope_layers": [1, 1, 1, 0])") == "");
  CHECK(of("llama4_text", R"(, "no_rope_layers": [1, 1, 1, 1])") != "");
  CHECK(of("llama4_text", R"(, "moe_layers": [0, 1, 2, 3])") == "");
  CHECK(of("llama4_text", R"(, "moe_layers": [1, 3])") ==
        "experts in other layers than every interleave_moe_layer_step-th");
  CHECK(of("llama4_text", R"(, "interleave_moe_layer_step": 2, "moe_layers": [1, 3])") == "");
  CHECK(of("minimax_m1", "") == "linear attention: most layers are lightning attention");
  CHECK(of("llama", R"(, "attention_bias": true, "mlp_bias": true)") == "");
  CHECK(of("llama", R"(, "mlp_bias": true)") == "biases of MLPs without those of attention");
}

TEST_CASE("modules that predict further tokens are like the last layer wherever they are counted") {
  Model model = ModelCatalog().model("mixtral-8x7b");
  model.layers = 4;
  model.mtp_layers = 1;
  model.moe_step = 2;
  for (const int first_dense : {0, 1}) {
    model.first_dense = first_dense;
    CHECK(model.is_moe_layer(4) == model.is_moe_layer(3));
  }
}

}  // namespace moebius
