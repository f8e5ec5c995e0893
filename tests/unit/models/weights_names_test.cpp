// Weights under their Hugging Face names: the parameters of a model, no more and no less.
#include "hw/error.h"
#include "models/weights/architecture_text.h"
#include "models/weights/weight_check.h"

#include <algorithm>
#include "tests/catch.h"

using namespace moebius;

namespace {

double elements(const std::vector<Weight>& weights) {
  double sum = 0;
  for (const Weight& weight : weights) {
    double product = weight.optional ? 0 : 1;
    for (const std::int64_t size : weight.shape) product *= static_cast<double>(size);
    sum += product;
  }
  return sum;
}

const Weight* find(const std::vector<Weight>& weights, const std::string& name) {
  const auto found =
      std::find_if(weights.begin(), weights.end(), [&](const Weight& weight) { return weight.name == name; });
  return found == weights.end() ? nullptr : &*found;
}

Model tiny_dense() {
  Model model;
  model.id = "tiny";
  model.layers = 1;
  model.hidden = 8;
  model.heads = model.kv_heads = 2;
  model.head_dim = 4;
  model.dense_width = 16;
  model.vocabulary = 32;
  return model;
}

std::map<std::string, FoundWeight> found_of(const Model& model) {
  std::map<std::string, FoundWeight> found;
  for (const Weight& weight : weights_of(model, WeightNaming::kShared)) {
    if (!weight.optional) found[weight.name] = {StoredType::kBf16, weight.shape};
  }
  return found;
}

std::string fault(const Model& model, const std::map<std::string, FoundWeight>& found) {
  try {
    check_weights("in", model, weights_of(model, WeightNaming::kShared), found);
  } catch (const Error& error) {
    CHECK(error.kind() == Error::Kind::kInput);
    return error.what();
  }
  return "no fault";
}

}  // namespace

TEST_CASE("the weights of every model that is mapped are as many as its parameters") {
  const ModelCatalog catalog;
  int mapped = 0;
  for (const std::string& id : catalog.ids()) {
    const Model model = catalog.model(id);
    if (!unmapped_reason(model).empty()) continue;
    INFO(id);
    const ParameterCount count = count_parameters(model);
    CHECK(elements(weights_of(model, WeightNaming::kShared)) == count.total() + count.mtp);
    ++mapped;
  }
  CHECK(mapped > 15);
}

TEST_CASE("names and shapes are those of the published checkpoints") {
  const ModelCatalog catalog;
  using Shape = std::vector<std::int64_t>;
  // DeepSeek-V3, model.safetensors.index.json: 61 layers, the first three dense, one module for multi-token
  // prediction.
  const std::vector<Weight> deepseek = weights_of(catalog.model("deepseek-v3"), WeightNaming::kShared);
  REQUIRE(find(deepseek, "model.layers.0.mlp.gate_proj.weight"));
  CHECK(find(deepseek, "model.layers.0.mlp.gate_proj.weight")->shape == Shape{18432, 7168});
  CHECK(find(deepseek, "model.layers.0.self_attn.kv_a_proj_with_mqa.weight")->shape == Shape{576, 7168});
  CHECK(find(deepseek, "model.layers.0.self_attn.q_b_proj.weight")->shape == Shape{24576, 1536});
  CHECK(find(deepseek, "model.layers.0.self_attn.kv_b_proj.weight")->shape == Shape{32768, 512});
  CHECK(find(deepseek, "model.layers.60.mlp.experts.255.down_proj.weight")->shape == Shape{7168, 2048});
  CHECK(find(deepseek, "model.layers.3.mlp.shared_experts.up_proj.weight")->shape == Shape{2048, 7168});
  CHECK(cut_of(find(deepseek, "model.layers.3.mlp.shared_experts.up_proj.weight")->part) == WeightCut::kRows);
  CHECK(cut_of(find(deepseek, "model.layers.3.mlp.shared_experts.down_proj.weight")->part) ==
        WeightCut::kColumns);
  CHECK(find(deepseek, "model.layers.3.mlp.gate.e_score_correction_bias")->shape == Shape{256});
  CHECK(find(deepseek, "model.layers.61.eh_proj.weight")->shape == Shape{7168, 14336});
  CHECK(find(deepseek, "model.layers.61.shared_head.norm.weight")->shape == Shape{7168});
  CHECK(find(deepseek, "model.layers.61.embed_tokens.weight")->optional);
  CHECK(scale_shape({576, 7168}) == Shape{5, 56});
  const std::vector<Weight> mixtral = weights_of(catalog.model("mixtral-8x7b"), WeightNaming::kMixtral);
  REQUIRE(find(mixtral, "model.layers.31.block_sparse_moe.experts.7.w2.weight"));
  CHECK(find(mixtral, "model.layers.31.block_sparse_moe.experts.7.w2.weight")->shape == Shape{4096, 14336});
  CHECK(find(mixtral, "model.layers.31.block_sparse_moe.gate.weight")->shape == Shape{8, 4096});
  CHECK(find(mixtral, "model.layers.0.self_attn.k_proj.weight")->shape == Shape{1024, 4096});
  // Qwen1.5-MoE-A2.7B, model.safetensors.index.json.
  const Model gated = catalog.model("qwen1.5-moe-a2.7b");
  const std::vector<Weight> qwen2 = weights_of(gated, usual_naming(gated));
  REQUIRE(find(qwen2, "model.layers.23.mlp.shared_expert_gate.weight"));
  CHECK(find(qwen2, "model.layers.23.mlp.shared_expert_gate.weight")->shape == Shape{1, 2048});
  CHECK(cut_of(find(qwen2, "model.layers.23.mlp.shared_expert_gate.weight")->part) == WeightCut::kNone);
  CHECK(find(qwen2, "model.layers.0.mlp.shared_expert.down_proj.weight")->shape == Shape{2048, 5632});
  const std::vector<Weight> qwen = weights_of(catalog.model("qwen3-30b-a3b"), WeightNaming::kShared);
  REQUIRE(find(qwen, "model.layers.47.mlp.experts.127.gate_proj.weight"));
  CHECK(find(qwen, "model.layers.0.self_attn.q_norm.weight")->shape == Shape{128});
  // MiniMax-M2, modeling_minimax_m2.py: norms of 48 heads together, and of 8.
  const std::vector<Weight> minimax = weights_of(catalog.model("minimax-m2.5"), WeightNaming::kMixtral);
  const Weight* norm = find(minimax, "model.layers.0.self_attn.q_norm.weight");
  REQUIRE(norm);
  CHECK(norm->shape == Shape{6144});
  CHECK(cut_of(norm->part) == WeightCut::kRows);
  CHECK(find(minimax, "model.layers.61.self_attn.k_norm.weight")->shape == Shape{1024});
}

TEST_CASE("the spelling shows in the names") {
  CHECK(naming_of({"model.layers.0.block_sparse_moe.gate.weight"}) == WeightNaming::kMixtral);
  CHECK(naming_of({"model.layers.0.mlp.shared_expert.up_proj.weight"}) == WeightNaming::kSharedOne);
  CHECK(naming_of({"model.layers.0.mlp.shared_experts.up_proj.weight"}) == WeightNaming::kShared);
  CHECK(naming_of({"model.layers.0.mlp.up_proj.weight"}) == WeightNaming::kShared);
}

TEST_CASE("a checkpoint that does not go with its model is refused with the nearest name") {
  const Model model = tiny_dense();
  REQUIRE(fault(model, found_of(model)) == "no fault");
  auto found = found_of(model);
  found.erase("model.layers.0.mlp.up_proj.weight");
  CHECK(fault(model, found) == R"(in: tensor "model.layers.0.mlp.up_proj.weight" of tiny is missing)");
  found["model.layers.0.mlp.upp_proj.weight"] = {StoredType::kBf16, {16, 8}};
  CHECK(
      fault(model, found) ==
      R"(in: tensor "model.layers.0.mlp.up_proj.weight" of tiny is missing (is "model.layers.0.mlp.upp_proj.weight" meant?))");
  found = found_of(model);
  found["model.layers.0.self_attn.rotary_emb.inv_freqs"] = {StoredType::kF32, {2}};
  CHECK(
      fault(model, found) ==
      R"(in: tensor "model.layers.0.self_attn.rotary_emb.inv_freqs" is not a weight of tiny (did you mean "model.layers.0.self_attn.rotary_emb.inv_freq"?))");
  found = found_of(model);
  found["model.norm.weight"].shape = {9};
  CHECK(fault(model, found) == R"(in: tensor "model.norm.weight" of tiny: expected shape [8], found [9])");
}

TEST_CASE("an 8-bit weight needs the factors of its blocks, others have none") {
  const Model model = tiny_dense();
  auto found = found_of(model);
  found["lm_head.weight"].type = StoredType::kFp8E4m3;
  CHECK(fault(model, found) == R"(in: tensor "lm_head.weight_scale_inv" of tiny is missing)");
  found["lm_head.weight_scale_inv"] = {StoredType::kF32, {1, 1}};
  CHECK(fault(model, found) == "no fault");
  found["lm_head.weight"].type = StoredType::kBf16;
  CHECK(fault(model, found) == R"(in: tensor "lm_head.weight_scale_inv" is not a weight of tiny)");
}

TEST_CASE("a layer whose attention and MLP share a norm has the first alone") {
  Model model = tiny_dense();
  const std::string second = "model.layers.0.post_attention_layernorm.weight";
  model.parallel_block = ParallelBlock::kTwoNorms;
  CHECK(find(weights_of(model, WeightNaming::kShared), second));
  model.parallel_block = ParallelBlock::kOneNorm;
  const std::vector<Weight> weights = weights_of(model, WeightNaming::kShared);
  CHECK_FALSE(find(weights, second));
  CHECK(find(weights, "model.layers.0.input_layernorm.weight"));
  CHECK(elements(weights) == count_parameters(model).total());
}

TEST_CASE("an architecture without names here says why") {
  Model model = tiny_dense();
  model.layer_norm = true;
  CHECK_THROWS_WITH(require_mapped("in", model),
                    "in: the weights of tiny are not mapped: norms with a mean and a bias");
}

TEST_CASE("the text of an architecture is read back as the same model") {
  const ModelCatalog catalog;
  for (const std::string& id : catalog.ids()) {
    INFO(id);
    Model model = catalog.model(id);
    const Document document = parse_document(architecture_text(model), "text");
    Model again = architecture_of(document.root, {.file = "text", .pointer = "", .line = 1});
    // What is said about a model is not what it computes.
    again.aliases = model.aliases;
    again.published = model.published;
    again.fp8_scales = model.fp8_scales;
    again.unsupported = model.unsupported;
    again.source = model.source;
    again.status = model.status;
    again.note = model.note;
    CHECK(again == model);
  }
}
