#include "models/weights/weight_names.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius {
namespace {

using Shape = std::vector<std::int64_t>;

// The last part of a name, behind "model.layers.N." or the whole of it; empty for experts, which depend on
// the spelling.
std::string_view plain_name(WeightPart part) {
  switch (part) {
    case WeightPart::kEmbedding:
      return "model.embed_tokens.weight";
    case WeightPart::kHead:
      return "lm_head.weight";
    case WeightPart::kFinalNorm:
      return "model.norm.weight";
    case WeightPart::kAttentionNorm:
      return "input_layernorm.weight";
    case WeightPart::kQuery:
      return "self_attn.q_proj.weight";
    case WeightPart::kKey:
      return "self_attn.k_proj.weight";
    case WeightPart::kValue:
      return "self_attn.v_proj.weight";
    case WeightPart::kOutput:
      return "self_attn.o_proj.weight";
    case WeightPart::kQueryDown:
      return "self_attn.q_a_proj.weight";
    case WeightPart::kQueryNorm:
      return "self_attn.q_a_layernorm.weight";
    case WeightPart::kQueryUp:
      return "self_attn.q_b_proj.weight";
    case WeightPart::kLatentDown:
      return "self_attn.kv_a_proj_with_mqa.weight";
    case WeightPart::kLatentNorm:
      return "self_attn.kv_a_layernorm.weight";
    case WeightPart::kLatentUp:
      return "self_attn.kv_b_proj.weight";
    case WeightPart::kQueryBias:
      return "self_attn.q_proj.bias";
    case WeightPart::kKeyBias:
      return "self_attn.k_proj.bias";
    case WeightPart::kValueBias:
      return "self_attn.v_proj.bias";
    case WeightPart::kOutputBias:
      return "self_attn.o_proj.bias";
    case WeightPart::kQueryHeadNorm:
    case WeightPart::kQueryRowNorm:
      return "self_attn.q_norm.weight";
    case WeightPart::kKeyHeadNorm:
    case WeightPart::kKeyRowNorm:
      return "self_attn.k_norm.weight";
    case WeightPart::kRotaryFrequencies:
      return "self_attn.rotary_emb.inv_freq";
    case WeightPart::kMlpNorm:
      return "post_attention_layernorm.weight";
    case WeightPart::kGate:
      return "mlp.gate_proj.weight";
    case WeightPart::kUp:
      return "mlp.up_proj.weight";
    case WeightPart::kDown:
      return "mlp.down_proj.weight";
    case WeightPart::kMtpEmbeddingNorm:
      return "enorm.weight";
    case WeightPart::kMtpHiddenNorm:
      return "hnorm.weight";
    case WeightPart::kMtpProjection:
      return "eh_proj.weight";
    case WeightPart::kMtpEmbedding:
      return "embed_tokens.weight";
    case WeightPart::kMtpHead:
      return "shared_head.head.weight";
    case WeightPart::kRouter:
    case WeightPart::kRouterBias:
    case WeightPart::kExpertGate:
    case WeightPart::kExpertUp:
    case WeightPart::kExpertDown:
    case WeightPart::kSharedGate:
    case WeightPart::kSharedUp:
    case WeightPart::kSharedDown:
    case WeightPart::kSharedScore:
      return "";
  }
  return "";
}

// 0 gate, 1 up, 2 down.
int matrix_index(WeightPart part) {
  const bool gate = part == WeightPart::kExpertGate || part == WeightPart::kSharedGate;
  const bool up = part == WeightPart::kExpertUp || part == WeightPart::kSharedUp;
  return gate ? 0 : up ? 1 : 2;
}

std::string expert_name(WeightPart part, int expert, WeightNaming naming) {
  constexpr const char* kProjections[] = {"gate_proj", "up_proj", "down_proj"};
  constexpr const char* kNumbered[] = {"w1", "w3", "w2"};
  const bool mixtral = naming == WeightNaming::kMixtral;
  if (part == WeightPart::kRouter) return mixtral ? "block_sparse_moe.gate.weight" : "mlp.gate.weight";
  if (part == WeightPart::kRouterBias)
    return mixtral ? "block_sparse_moe.e_score_correction_bias" : "mlp.gate.e_score_correction_bias";
  if (part == WeightPart::kSharedScore) return "mlp.shared_expert_gate.weight";
  const int matrix = matrix_index(part);
  const bool routed =
      part == WeightPart::kExpertGate || part == WeightPart::kExpertUp || part == WeightPart::kExpertDown;
  if (!routed) {
    return fmt::format("mlp.shared_expert{}.{}.weight", naming == WeightNaming::kSharedOne ? "" : "s",
                       kProjections[matrix]);
  }
  if (mixtral) return fmt::format("block_sparse_moe.experts.{}.{}.weight", expert, kNumbered[matrix]);
  return fmt::format("mlp.experts.{}.{}.weight", expert, kProjections[matrix]);
}

class WeightList {
 public:
  WeightList(const Model& model, WeightNaming naming) : model_(model), naming_(naming) {}

  std::vector<Weight> all() {
    const std::int64_t h = model_.hidden, vocabulary = model_.vocabulary;
    add(WeightPart::kEmbedding, {vocabulary, h});
    for (int layer = 0; layer < model_.layers; ++layer) add_layer(layer);
    layer_ = model_.layers - 1;
    add(WeightPart::kFinalNorm, {h});
    add(WeightPart::kHead, {vocabulary, h}, model_.tied_embeddings);
    for (int i = 0; i < model_.mtp_layers; ++i) add_mtp_module(model_.layers + i);
    return std::move(list_);
  }

 private:
  void add(WeightPart part, Shape shape, bool optional = false, int expert = -1) {
    list_.push_back({.name = weight_name(part, layer_, expert, model_, naming_),
                     .part = part,
                     .layer = layer_,
                     .expert = expert,
                     .shape = std::move(shape),
                     .optional = optional});
  }

  void add_layer(int layer) {
    layer_ = layer;
    add(WeightPart::kAttentionNorm, {model_.hidden});
    if (model_.attention == AttentionKind::kMla) {
      add_latent_attention();
    } else {
      add_grouped_attention();
    }
    add(WeightPart::kOutput, {model_.hidden, model_.value_dim()});
    if (model_.parallel_block != ParallelBlock::kOneNorm) add(WeightPart::kMlpNorm, {model_.hidden});
    if (model_.is_moe_layer(layer)) {
      add_experts();
    } else {
      add_mlp({WeightPart::kGate, WeightPart::kUp, WeightPart::kDown}, model_.dense_width);
    }
  }

  void add_grouped_attention() {
    const std::int64_t h = model_.hidden, d = model_.head_dim, queries = model_.query_dim();
    const std::int64_t keys = d * model_.kv_heads;
    add(WeightPart::kQuery, {queries, h});
    add(WeightPart::kKey, {keys, h});
    add(WeightPart::kValue, {keys, h});
    if (model_.biases == Biases::kQkv) {
      add(WeightPart::kQueryBias, {queries});
      add(WeightPart::kKeyBias, {keys});
      add(WeightPart::kValueBias, {keys});
      add(WeightPart::kOutputBias, {h}, true);  // Llama's "attention_bias" has it, Qwen2 has not
    }
    if (model_.qk_norm == QkNorm::kPerHead) {
      add(WeightPart::kQueryHeadNorm, {d});
      add(WeightPart::kKeyHeadNorm, {d});
    }
    if (model_.qk_norm == QkNorm::kPerLayer) {
      add(WeightPart::kQueryRowNorm, {queries});
      add(WeightPart::kKeyRowNorm, {keys});
    }
    add(WeightPart::kRotaryFrequencies, {d / 2}, true);  // a constant that early Llama checkpoints hold
  }

  void add_latent_attention() {
    const Mla& mla = model_.mla;
    const std::int64_t h = model_.hidden, queries = model_.query_dim();
    if (mla.q_rank > 0) {
      add(WeightPart::kQueryDown, {mla.q_rank, h});
      add(WeightPart::kQueryNorm, {mla.q_rank});
      add(WeightPart::kQueryUp, {queries, mla.q_rank});
    } else {
      add(WeightPart::kQuery, {queries, h});
    }
    add(WeightPart::kLatentDown, {mla.kv_rank + mla.rope_dim, h});
    add(WeightPart::kLatentNorm, {mla.kv_rank});
    add(WeightPart::kLatentUp, {std::int64_t{model_.heads} * (mla.nope_dim + mla.v_dim), mla.kv_rank});
    add(WeightPart::kRotaryFrequencies, {mla.rope_dim / 2}, true);
  }

  struct Mlp {
    WeightPart gate, up, down;
  };
  void add_mlp(const Mlp& mlp, std::int64_t width, int expert = -1) {
    add(mlp.gate, {width, model_.hidden}, false, expert);
    add(mlp.up, {width, model_.hidden}, false, expert);
    add(mlp.down, {model_.hidden, width}, false, expert);
  }

  void add_experts() {
    const Experts& experts = model_.experts;
    add(WeightPart::kRouter, {experts.routed, model_.hidden});
    if (experts.score == GateScore::kSigmoid) add(WeightPart::kRouterBias, {experts.routed}, true);
    for (int expert = 0; expert < experts.routed; ++expert)
      add_mlp({WeightPart::kExpertGate, WeightPart::kExpertUp, WeightPart::kExpertDown}, experts.width,
              expert);
    if (experts.shared_width == 0) return;
    add_mlp({WeightPart::kSharedGate, WeightPart::kSharedUp, WeightPart::kSharedDown}, experts.shared_width);
    if (experts.shared_gate) add(WeightPart::kSharedScore, {1, model_.hidden});
  }

  // Published checkpoints repeat the tables that the module shares with the model.
  void add_mtp_module(int layer) {
    const std::int64_t h = model_.hidden;
    layer_ = layer;
    add(WeightPart::kMtpEmbedding, {model_.vocabulary, h}, true);
    add(WeightPart::kMtpEmbeddingNorm, {h});
    add(WeightPart::kMtpHiddenNorm, {h});
    add(WeightPart::kMtpProjection, {h, 2 * h});
    add_layer(layer);
    add(WeightPart::kFinalNorm, {h});
    add(WeightPart::kMtpHead, {model_.vocabulary, h}, true);
  }

  const Model& model_;
  WeightNaming naming_;
  int layer_ = -1;
  std::vector<Weight> list_;
};

}  // namespace

WeightCut cut_of(WeightPart part) {
  switch (part) {
    case WeightPart::kEmbedding:
    case WeightPart::kHead:
    case WeightPart::kQuery:
    case WeightPart::kKey:
    case WeightPart::kValue:
    case WeightPart::kQueryUp:
    case WeightPart::kLatentUp:
    case WeightPart::kQueryBias:
    case WeightPart::kKeyBias:
    case WeightPart::kValueBias:
    case WeightPart::kQueryRowNorm:
    case WeightPart::kKeyRowNorm:
    case WeightPart::kGate:
    case WeightPart::kUp:
    case WeightPart::kSharedGate:
    case WeightPart::kSharedUp:
    case WeightPart::kMtpEmbedding:
    case WeightPart::kMtpHead:
      return WeightCut::kRows;
    case WeightPart::kOutput:
    case WeightPart::kDown:
    case WeightPart::kSharedDown:
      return WeightCut::kColumns;
    case WeightPart::kFinalNorm:
    case WeightPart::kAttentionNorm:
    case WeightPart::kQueryDown:
    case WeightPart::kQueryNorm:
    case WeightPart::kLatentDown:
    case WeightPart::kLatentNorm:
    case WeightPart::kOutputBias:
    case WeightPart::kQueryHeadNorm:
    case WeightPart::kKeyHeadNorm:
    case WeightPart::kRotaryFrequencies:
    case WeightPart::kMlpNorm:
    case WeightPart::kRouter:
    case WeightPart::kRouterBias:
    case WeightPart::kExpertGate:
    case WeightPart::kExpertUp:
    case WeightPart::kExpertDown:
    case WeightPart::kSharedScore:
    case WeightPart::kMtpEmbeddingNorm:
    case WeightPart::kMtpHiddenNorm:
    case WeightPart::kMtpProjection:
      return WeightCut::kNone;
  }
  return WeightCut::kNone;
}

std::vector<Weight> weights_of(const Model& model, WeightNaming naming) {
  CHECK(unmapped_reason(model).empty(), model.id + ": " + unmapped_reason(model));
  return WeightList(model, naming).all();
}

std::string unmapped_reason(const Model& model) {
  if (!model.unsupported.empty()) return model.unsupported;
  if (model.delta.given()) return "gated delta networks";
  if (model.output_gate) return "attention with an output gate";
  if (model.is_sparse()) return "an indexer of sparse attention";
  if (model.layer_norm) return "norms with a mean and a bias";
  if (!model.gated) return "MLPs of two matrices";
  if (model.learned_positions > 0) return "a learned position table";
  if (model.biases == Biases::kAll) return "biases on every linear map";
  if (model.kv_share > 1) return "layers that share keys and values";
  return "";
}

std::string weight_name(WeightPart part, int layer, int expert, const Model& model, WeightNaming naming) {
  const bool table = part == WeightPart::kEmbedding || part == WeightPart::kHead;
  const bool last_norm = part == WeightPart::kFinalNorm && layer < model.layers;
  const std::string_view plain = plain_name(part);
  if (table || last_norm) return std::string(plain);
  if (part == WeightPart::kFinalNorm) return fmt::format("model.layers.{}.shared_head.norm.weight", layer);
  return fmt::format("model.layers.{}.{}", layer,
                     plain.empty() ? expert_name(part, expert, naming) : std::string(plain));
}

WeightNaming usual_naming(const Model& model) {
  return model.experts.shared_gate ? WeightNaming::kSharedOne : WeightNaming::kShared;
}

WeightNaming naming_of(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name.find(".block_sparse_moe.") != std::string::npos) return WeightNaming::kMixtral;
    if (name.find(".shared_expert.") != std::string::npos) return WeightNaming::kSharedOne;
  }
  return WeightNaming::kShared;
}

std::vector<std::int64_t> scale_shape(const std::vector<std::int64_t>& weight) {
  std::vector<std::int64_t> shape;
  shape.reserve(weight.size());
  for (const std::int64_t size : weight) shape.push_back((size + kScaleBlock - 1) / kScaleBlock);
  return shape;
}

}  // namespace moebius
