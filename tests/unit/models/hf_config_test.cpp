#include "models/hf_config.h"

#include "hw/error.h"

#include <filesystem>
#include "tests/catch.h"

namespace moebius {
namespace {

std::string config_path(const std::string& id) {
  return std::string(MOEBIUS_SOURCE_DIR) + "/tests/unit/models/configs/" + id + ".json";
}

// The architecture alone: names, published numbers and sources differ by nature.
Model architecture(Model model) {
  model.id = model.source = model.status = model.note = "";
  model.aliases.clear();
  model.published = {};
  model.fp8_scales = {};  // of another checkpoint than the configuration's
  return model;
}

Model read(const std::string& text) {
  return model_from_hf_config(parse_document(text, "config.json"));
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A small Llama with `more` keys behind it.
std::string llama(const std::string& more) {
  return R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
"intermediate_size": 128, "vocab_size": 100)" +
         more + "}";
}

}  // namespace

TEST_CASE("a Hugging Face configuration and the catalog entry of the same model agree") {
  const ModelCatalog catalog;
  int compared = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(config_path("x").substr(0, config_path("x").size() - 6))) {
    const std::string id = file.path().stem().string();
    const Model ours = catalog.model(id);
    const Model theirs = model_from_hf_config(load_document(file.path().string()));
    INFO(id);
    CHECK(architecture(theirs) == architecture(ours));
    CHECK(count_parameters(theirs).total() == count_parameters(ours).total());
    CHECK(active_parameters(theirs) == active_parameters(ours));
    ++compared;
  }
  CHECK(compared >= 45);
}

TEST_CASE("a model is named after its file") {
  CHECK(read(llama("")).id == "config.json");
  CHECK(read(llama("")).status == "as given");
}

TEST_CASE("what has a scale in a checkpoint of 8 bits is read of its quantization_config") {
  const auto scales = [](const std::string& config) {
    return read(llama(R"(, "quantization_config": )" + config)).fp8_scales;
  };
  CHECK_FALSE(read(llama("")).fp8_scales.has_value());
  CHECK(scales(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})") == Fp8Scales::kBlock);
  CHECK(scales(R"({"quant_method": "fp8", "activation_scheme": "static"})") == Fp8Scales::kTensor);
  CHECK(scales(R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0,
    "modules_to_not_convert": ["model.layers.0.mlp.down_proj", "lm_head"]})") == Fp8Scales::kTensor);
  CHECK(scales(R"({"quant_method": "modelopt", "quant_algo": "FP8"})") == Fp8Scales::kTensor);
  CHECK_FALSE(scales(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})").has_value());
  CHECK(scales(R"({"quant_method": "modelopt", "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"})") ==
        Fp8Scales::kTensor);
  CHECK(scales(R"({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"})") == Fp8Scales::kBlock);
  CHECK(scales(R"({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}})") ==
        Fp8Scales::kTensor);
  const std::string group =
      R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": )";
  CHECK(scales(group + R"({"num_bits": 8, "type": "float", "strategy": "channel"}}}})") ==
        Fp8Scales::kTensor);
  CHECK(scales(group + R"({"num_bits": 8, "type": "float", "strategy": "block"}}}})") == Fp8Scales::kBlock);
  CHECK_FALSE(scales(group + R"({"num_bits": 8, "type": "float", "strategy": "group"}}}})").has_value());
  CHECK_FALSE(scales(group + R"({"num_bits": 8, "type": "int", "strategy": "channel"}}}})").has_value());
  const Model inside = read(R"({"model_type": "llava", "text_config": )" + llama("") +
                            R"(, "quantization_config": {"quant_method": "fp8"}})");
  CHECK(inside.fp8_scales == Fp8Scales::kTensor);
}

// A product is multiplied by the kernels of its checkpoint's scales, whichever way the model was named.
TEST_CASE("of a configuration without quantisation the family's published checkpoint says what has a scale") {
  const ModelCatalog catalog;
  const auto blocks = [](const Model& model) {
    return model.fp8_scales.value_or(model.experts.routed == 0 ? Fp8Scales::kTensor : Fp8Scales::kBlock);
  };
  int tensors = 0;
  for (const char* id : {"mixtral-8x7b", "mixtral-8x22b", "glm-4.5", "glm-4.5-air", "llama-4-scout",
                         "llama-4-maverick", "qwen3-30b-a3b", "qwen3-235b-a22b", "minimax-m2.5", "ling-1t"}) {
    INFO(id);
    const Model theirs = model_from_hf_config(load_document(config_path(id)));
    CHECK(blocks(theirs) == blocks(catalog.model(id)));
    tensors += blocks(theirs) == Fp8Scales::kTensor;
  }
  CHECK(tensors == 6);
}

TEST_CASE("heads without a width of their own share the hidden size") {
  CHECK(read(llama("")).head_dim == 16);
  CHECK(read(llama(R"(, "head_dim": 32)")).head_dim == 32);
  CHECK(read(llama(R"(, "head_dim": null)")).head_dim == 16);
}

TEST_CASE("an unknown model_type names the nearest known one") {
  const std::string error = error_of(R"({"model_type": "deepseek_v33"})");
  CHECK(error.find(
            "config.json:1: /model_type: unknown model_type \"deepseek_v33\" (did you mean \"deepseek_v3") ==
        0);
}

TEST_CASE("what a decoder needs is required") {
  CHECK(error_of(R"({"hidden_size": 4})").find("model_type") != std::string::npos);
  CHECK(error_of(R"({"model_type": "llama", "hidden_size": 4})").find("num_hidden_layers") !=
        std::string::npos);
  CHECK(
      error_of(
          R"({"model_type": "deepseek_v3", "num_hidden_layers": 1, "hidden_size": 4, "num_attention_heads": 1,
                     "vocab_size": 8})")
          .find("kv_lora_rank") != std::string::npos);
}

TEST_CASE("integers from a file are bounded") {
  CHECK(error_of(R"({"model_type": "llama", "num_hidden_layers": 10001})").find("/num_hidden_layers") !=
        std::string::npos);
  CHECK(error_of(R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 1000001})")
            .find("/hidden_size") != std::string::npos);
  CHECK(error_of(R"({"model_type": "llama", "num_hidden_layers": -1})").find("/num_hidden_layers") !=
        std::string::npos);
  CHECK(error_of(R"({"model_type": "llama", "num_hidden_layers": "2"})").find("/num_hidden_layers") !=
        std::string::npos);
  CHECK(error_of(R"({"model_type": "llama", "num_hidden_layers": 1.5})").find("/num_hidden_layers") !=
        std::string::npos);
  CHECK(error_of(R"({"model_type": ["llama"]})").find("/model_type") != std::string::npos);
}

TEST_CASE("sizes that do not go together are an error") {
  CHECK(error_of(llama(R"(, "num_key_value_heads": 3)")) ==
        "config.json:2: /num_key_value_heads: num_attention_heads 4 are not divisible by num_key_value_heads "
        "3");
  CHECK(
      error_of(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 65, "num_attention_heads": 4,
"intermediate_size": 128, "vocab_size": 100})") ==
      "config.json:1: /hidden_size: expected a multiple of num_attention_heads 4, or a head_dim beside it, "
      "found 65");
  CHECK(
      error_of(R"({"model_type": "x", "text_config": {"model_type": "dbrx", "n_layers": 2,
"d_model": 65, "n_heads": 4, "vocab_size": 100}})") ==
      "config.json:2: /text_config/d_model: expected a multiple of n_heads 4, or a head_dim beside it, found "
      "65");
  CHECK(error_of(llama(R"(, "layer_types": ["full_attention"])")) ==
        "config.json:2: /layer_types: expected a kind for each of 2 layers, found 1");
}

TEST_CASE("layer_types has the last word on windows") {
  const std::string base = R"({"model_type": "mistral", "num_hidden_layers": 4, "hidden_size": 64,
"num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 100, "sliding_window": 8)";
  const Model all = read(base + "}");
  CHECK(all.window(3) == 8);
  const Model alternating =
      read(base + R"(, "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
"full_attention"]})");
  CHECK(alternating.window(0) == 8);
  CHECK(alternating.window(1) == 0);
  const Model none = read(base + R"(, "layer_types": ["full_attention", "full_attention", "full_attention",
"full_attention"]})");
  CHECK(none.sliding_window == 0);
  const Model odd =
      read(base + R"(, "layer_types": ["full_attention", "sliding_attention", "sliding_attention",
"sliding_attention"]})");
  CHECK(odd.unsupported ==
        "layer_types has full_attention elsewhere than in every n-th layer, counted from the first");
  const Model linear =
      read(base + R"(, "layer_types": ["linear_attention", "linear_attention", "linear_attention",
"full_attention"]})");
  CHECK(linear.unsupported == "layer_types names \"linear_attention\"");
}

TEST_CASE("windows that layers have are in the model or a reason against it") {
  const std::string sizes = R"("num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
"num_key_value_heads": 4, "vocab_size": 100, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
"intermediate_size": 128, "sliding_window": 1024)";
  const std::string sliding = R"(, "layer_types": ["sliding_attention", "sliding_attention"]})";
  const std::string upper = R"(, "use_sliding_window": true, "max_window_layers": )";
  for (const char* type : {"qwen2", "qwen3", "qwen3_moe"}) {
    INFO(type);
    const std::string config = fmt::format(R"({{"model_type": "{}", {})", type, sizes);
    CHECK(read(config + "}").sliding_window == 0);
    CHECK(read(config + upper + "0}").sliding_window == 1024);
    CHECK(read(config + upper + "1}").unsupported == "sliding windows in the upper layers only");
    CHECK(read(config + upper + "2}").unsupported.empty());  // none is above them
    CHECK(read(config + upper + "2}").sliding_window == 0);
    CHECK(read(config + R"(, "use_sliding_window": true)" + sliding).window(1) == 1024);
    CHECK(read(config + sliding).unsupported ==
          "layer_types names \"sliding_attention\", of which no sliding_window was read");
  }
  const Model model = read(llama(R"(, "sliding_window": 1024)" + sliding.substr(0, sliding.size() - 1)));
  CHECK(model.unsupported == "layer_types names \"sliding_attention\", of which no sliding_window was read");
}

TEST_CASE("keys that a file leaves out are what the family's own configuration class says") {
  const std::string sizes = R"("num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 32,
"vocab_size": 100, "intermediate_size": 128, "moe_intermediate_size": 32, "num_experts": 64,
"num_local_experts": 64, "n_routed_experts": 64, "num_experts_per_tok": 4, "kv_lora_rank": 16,
"qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8)";
  const auto of = [&](std::string_view type, const std::string& more = "") {
    return read(fmt::format(R"({{"model_type": "{}", {}{}}})", type, sizes, more));
  };
  struct Family {
    std::string_view type;
    int kv_heads, head_dim;
  };
  for (const auto& [type, kv_heads, head_dim] :
       {Family{"llama", 32, 16}, Family{"mistral", 8, 16}, Family{"mixtral", 8, 16}, Family{"qwen3", 32, 128},
        Family{"qwen3_moe", 4, 16}, Family{"gpt_oss", 8, 64}, Family{"glm4_moe", 8, 16}}) {
    INFO(type);
    CHECK(of(type).kv_heads == kv_heads);
    CHECK(of(type).head_dim == head_dim);
    CHECK(of(type, R"(, "num_key_value_heads": null)").kv_heads == 32);
  }
  CHECK(of("gpt_oss").window(0) == 128);
  CHECK(of("glm4_moe").first_dense == 1);
  CHECK(of("deepseek_v2").first_dense == 0);
  CHECK(of("deepseek_v2").experts.shared == 2);
  const Model v3 = of("deepseek_v3");
  CHECK(v3.first_dense == 3);
  CHECK(v3.experts.shared == 1);
  CHECK(v3.experts.groups == 8);
  CHECK(v3.experts.active_groups == 4);
  CHECK(v3.experts.scale == 2.5);
  CHECK_THROWS_WITH(of("bailing_moe"), Catch::Contains("num_key_value_heads"));
}

TEST_CASE("errors of sizes stand where the file has them") {
  CHECK(
      error_of("{\n\"model_type\": \"mixtral\", \"num_hidden_layers\": 2, \"hidden_size\": 96,\n"
               "\"num_attention_heads\": 12, \"vocab_size\": 100, \"intermediate_size\": 32,\n"
               "\"num_local_experts\": 4, \"num_experts_per_tok\": 2}") ==
      "config.json:1: /num_key_value_heads: num_attention_heads 12 are not divisible by num_key_value_heads "
      "8; the file has no num_key_value_heads");
  CHECK(error_of("{\n\"model_type\": \"mixtral\", \"num_hidden_layers\": 2, \"hidden_size\": 64,\n"
                 "\"num_attention_heads\": 8, \"vocab_size\": 100, \"intermediate_size\": 32,\n"
                 "\"num_local_experts\": 4,\n\"num_experts_per_tok\": 5}") ==
        "config.json:5: /num_experts_per_tok: active experts 5 are more than routed experts 4");
}

TEST_CASE("a window no shorter than the longest sequence is none") {
  const std::string base = R"({"model_type": "mistral", "num_hidden_layers": 1, "hidden_size": 64,
"num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 4096)";
  CHECK(read(base + R"(, "sliding_window": 4096})").sliding_window == 0);
  CHECK(read(base + R"(, "sliding_window": 1024})").sliding_window == 1024);
}

TEST_CASE("shared experts of Qwen2-MoE and its successors have a gate") {
  const std::string sizes = R"("num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
"num_key_value_heads": 4, "vocab_size": 100, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32)";
  const std::string qwen2 = R"({"model_type": "qwen2_moe", )" + sizes;
  const Model shared = read(qwen2 + R"(, "shared_expert_intermediate_size": 96})");
  CHECK(shared.experts.shared_gate);
  CHECK(shared.experts.shared_width == 96);
  CHECK(shared.biases == Biases::kQkv);
  CHECK(read(qwen2 + R"(, "shared_expert_intermediate_size": 96, "qkv_bias": false})").biases ==
        Biases::kNone);
  CHECK_FALSE(read(qwen2 + R"(, "shared_expert_intermediate_size": 0})").experts.shared_gate);
  CHECK_FALSE(read(R"({"model_type": "qwen3_moe", )" + sizes + "}").experts.shared_gate);
}

TEST_CASE("of Qwen3-Next all but every fourth layer are delta networks, and attention has a gate") {
  const std::string config = R"({"model_type": "qwen3_next", "num_hidden_layers": 8, "hidden_size": 64,
"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 100, "num_experts": 8,
"num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 8,
"linear_conv_kernel_dim": 4)";
  const Model model = read(config + "}");
  CHECK(model.unsupported.empty());
  CHECK(model.delta == DeltaNet{2, 4, 16, 8, 4});
  CHECK(model.is_delta_layer(2));
  CHECK_FALSE(model.is_delta_layer(3));
  CHECK(model.num_attention_layers() == 2);
  CHECK(model.output_gate);
  CHECK(model.experts.shared_gate);
  CHECK(model.rotary_dim == 8);  // a quarter of 32
  const Model other = read(config + R"(, "full_attention_interval": 2, "attn_output_gate": false,
"rope_parameters": {"partial_rotary_factor": 0.5}})");
  CHECK(other.num_attention_layers() == 4);
  CHECK_FALSE(other.output_gate);
  CHECK(other.rotary_dim == 16);
  const Model named =
      read(config + R"(, "layer_types": ["linear_attention", "full_attention", "linear_attention",
"full_attention", "linear_attention", "full_attention", "linear_attention", "full_attention"]})");
  CHECK(named.num_attention_layers() == 4);
}

TEST_CASE("architectures that cannot run say why") {
  const std::string experts =
      R"(, "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32})";
  CHECK(read(R"({"model_type": "qwen3_moe")" + experts).unsupported.empty());
  const std::string local = R"({"model_type": "minimax_m2", "num_hidden_layers": 2, "hidden_size": 64,
"num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100, "intermediate_size": 32,
"num_local_experts": 8, "num_experts_per_tok": 2)";
  CHECK(read(local + R"(, "attn_type_list": [1, 1]})").unsupported.empty());
  CHECK(read(local + R"(, "attn_type_list": [0, 1]})").unsupported ==
        "linear attention: some layers are lightning attention (attn_type_list)");
  CHECK(read(local + R"(, "scoring_func": "sqrtsoftplus"})").unsupported ==
        "gate scores by \"sqrtsoftplus\"");
}

TEST_CASE("an index_topk gives latent attention an indexer") {
  const std::string latent = R"({"model_type": "glm_moe_dsa", "num_hidden_layers": 4, "hidden_size": 64,
"num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 128, "moe_intermediate_size": 32,
"n_routed_experts": 8, "num_experts_per_tok": 2, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
"qk_rope_head_dim": 4, "v_head_dim": 8)";
  CHECK_FALSE(read(latent + "}").is_sparse());
  const Model sparse = read(latent + R"(, "index_topk": 32, "index_n_heads": 2, "index_head_dim": 16})");
  CHECK(sparse.unsupported.empty());
  CHECK(sparse.indexer == Indexer{.heads = 2, .head_dim = 16, .top = 32});
  CHECK(error_of(latent + R"(, "index_topk": 32, "index_n_heads": 2, "index_head_dim": 4})") ==
        "config.json:4: /index_head_dim: index_head_dim 4 is not more than the 4 columns that turn");
}

TEST_CASE("ERNIE's layers with experts end where it says, and dense ones above them cannot run") {
  const std::string ernie = R"({"model_type": "ernie4_5_moe", "num_hidden_layers": 4, "hidden_size": 64,
"num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 128, "moe_num_experts": 8, "moe_k": 2,
"moe_intermediate_size": 32, "moe_layer_end_index": )";
  CHECK(read(ernie + "3}").unsupported.empty());
  CHECK(read(ernie + "-1}").unsupported.empty());
  CHECK(read(ernie + "2}").unsupported ==
        "dense layers above those with experts (moe_layer_end_index 2 of 4 layers)");
}

TEST_CASE("Hunyuan's first layers are dense where it skips them, and its sizes are required") {
  const std::string hunyuan = R"({"model_type": "hunyuan_v1_moe", "num_hidden_layers": 4, "hidden_size": 64,
"num_attention_heads": 4, "vocab_size": 100, "num_experts": 8)";
  const std::string whole = hunyuan + R"(, "intermediate_size": 128, "moe_topk": 2)";
  CHECK(read(whole + "}").first_dense == 0);
  const Model skips = read(whole + R"(, "moe_layer_num_skipped": 1})");
  CHECK(skips.first_dense == 1);
  CHECK(skips.dense_width == 128);
  CHECK(error_of(hunyuan + R"(, "intermediate_size": 128})") ==
        "config.json:1: expected key \"moe_topk\", found none");
  CHECK(error_of(hunyuan + R"(, "moe_topk": 2})") ==
        "config.json:1: expected key \"intermediate_size\", found none");
  CHECK(error_of(hunyuan + R"(, "moe_topk": 2, "intermediate_size": 0})") ==
        "config.json:2: /intermediate_size: expected an integer from 1 to 10000000, found 0");
}

TEST_CASE("experts whose width stands under intermediate_size need it") {
  CHECK(error_of(R"({"model_type": "gpt_oss", "num_hidden_layers": 2, "hidden_size": 64,
"num_attention_heads": 8, "vocab_size": 100, "num_local_experts": 4, "num_experts_per_tok": 2})") ==
        "config.json:1: expected key \"intermediate_size\", found none");
  CHECK(error_of("{\"model_type\": \"deepseek_v3\", \"num_hidden_layers\": 4, \"hidden_size\": 64,\n"
                 "\"num_attention_heads\": 4, \"vocab_size\": 100, \"intermediate_size\": 128,\n"
                 "\"moe_intermediate_size\": 32, \"n_routed_experts\": 64, \"kv_lora_rank\": 16,\n"
                 "\"qk_nope_head_dim\": 8, \"qk_rope_head_dim\": 4, \"v_head_dim\": 8,\n"
                 "\"num_experts_per_tok\": 3}") ==
        "config.json:5: /num_experts_per_tok: active experts 3 are fewer than topk_group 4; the file has no "
        "topk_group");
}

TEST_CASE("dense layers that mlp_only_layers names must lead") {
  const std::string base = R"({"model_type": "qwen3_moe", "num_hidden_layers": 4, "hidden_size": 64,
"num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 128, "num_experts": 8, "num_experts_per_tok": 2,
"moe_intermediate_size": 32, "mlp_only_layers": )";
  CHECK(read(base + "[0, 1]}").first_dense == 2);
  CHECK_FALSE(read(base + "[2]}").unsupported.empty());
}

TEST_CASE("Phi-3.5-MoE: 41.9B parameters, 6.6B active") {
  // Abdin et al. 2024: 16 experts, two of them active; 42B and 6.6B.
  const Model model = read(R"({"model_type": "phimoe", "num_hidden_layers": 32, "hidden_size": 4096,
"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 6400, "num_local_experts": 16,
"num_experts_per_tok": 2, "vocab_size": 32064, "attention_bias": true, "sliding_window": 131072,
"max_position_embeddings": 131072, "tie_word_embeddings": false})");
  CHECK(count_parameters(model).total() == Approx(41.9e9).epsilon(0.015));
  CHECK(active_parameters(model) == Approx(6.6e9).epsilon(0.015));
  CHECK(model.sliding_window == 0);
}

}  // namespace moebius
