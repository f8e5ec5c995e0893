#include "models/weights/architecture_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "hw/json_text.h"
#include "models/architecture_reader.h"

namespace moebius {
namespace {

class ObjectText {
 public:
  void integer(std::string_view key, int value) { row(key, std::to_string(value)); }
  void flag(std::string_view key, bool value) { row(key, value ? "true" : "false"); }
  void text(std::string_view key, std::string_view value) { row(key, json_string(value)); }
  void row(std::string_view key, const std::string& value) {
    rows_.push_back(fmt::format("\"{}\": {}", key, value));
  }
  std::string str() const { return fmt::format("{{{}}}", fmt::join(rows_, ", ")); }

 private:
  std::vector<std::string> rows_;
};

std::string_view name_of(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::kMha:
      return "mha";
    case AttentionKind::kGqa:
      return "gqa";
    case AttentionKind::kMla:
      return "mla";
  }
  return "";
}

std::string_view name_of(Biases biases) {
  switch (biases) {
    case Biases::kNone:
      return "none";
    case Biases::kQkv:
      return "qkv";
    case Biases::kAll:
      return "all";
  }
  return "";
}

std::string mla_text(const Mla& mla) {
  ObjectText text;
  text.integer("q_rank", mla.q_rank);
  text.integer("kv_rank", mla.kv_rank);
  text.integer("nope_dim", mla.nope_dim);
  text.integer("rope_dim", mla.rope_dim);
  text.integer("v_dim", mla.v_dim);
  return text.str();
}

std::string indexer_text(const Indexer& indexer) {
  ObjectText text;
  text.integer("heads", indexer.heads);
  text.integer("head_dim", indexer.head_dim);
  text.integer("top", indexer.top);
  return text.str();
}

std::string experts_text(const Experts& experts) {
  ObjectText text;
  text.integer("routed", experts.routed);
  text.integer("active", experts.active);
  text.integer("width", experts.width);
  text.integer("shared", experts.shared);
  text.integer("shared_width", experts.shared_width);
  if (experts.shared_gate) text.flag("shared_gate", true);
  text.integer("groups", experts.groups);
  text.integer("active_groups", experts.active_groups);
  text.text("score", experts.score == GateScore::kSigmoid ? "sigmoid" : "softmax");
  text.row("scale", fmt::format("{}", experts.scale));
  return text.str();
}

std::string delta_text(const DeltaNet& delta) {
  ObjectText text;
  text.integer("key_heads", delta.key_heads);
  text.integer("value_heads", delta.value_heads);
  text.integer("key_dim", delta.key_dim);
  text.integer("value_dim", delta.value_dim);
  text.integer("convolution", delta.convolution);
  return text.str();
}

void write_attention(const Model& model, ObjectText& text) {
  text.integer("heads", model.heads);
  text.text("attention", name_of(model.attention));
  text.integer("kv_heads", model.kv_heads);
  if (model.attention == AttentionKind::kMla) {
    text.row("mla", mla_text(model.mla));
    if (model.is_sparse()) text.row("indexer", indexer_text(model.indexer));
    return;
  }
  text.integer("head_dim", model.head_dim);
  text.integer("sliding_window", model.sliding_window);
  text.integer("attention_chunk", model.attention_chunk);
  text.integer("full_attention_every", model.full_attention_every);
  text.integer("kv_share", model.kv_share);
  text.integer("rotary_dim", model.rotary_dim);
  text.integer("no_rotary_every", model.no_rotary_every);
  text.flag("output_gate", model.output_gate);
  if (model.delta.given()) text.row("delta", delta_text(model.delta));
}

}  // namespace

std::string architecture_text(const Model& model) {
  ObjectText text;
  text.text("id", model.id);
  text.integer("layers", model.layers);
  text.integer("hidden", model.hidden);
  text.integer("vocabulary", model.vocabulary);
  write_attention(model, text);
  text.integer("dense_width", model.dense_width);
  if (model.experts.routed > 0) {
    text.row("experts", experts_text(model.experts));
    text.integer("first_dense", model.first_dense);
    text.integer("moe_step", model.moe_step);
  }
  text.integer("mtp_layers", model.mtp_layers);
  text.integer("learned_positions", model.learned_positions);
  text.flag("gated", model.gated);
  text.flag("tied_embeddings", model.tied_embeddings);
  text.text("biases", name_of(model.biases));
  if (model.qk_norm == QkNorm::kPerLayer)
    text.text("qk_norm", "per_layer");
  else
    text.flag("qk_norm", model.qk_norm == QkNorm::kPerHead);
  if (model.is_parallel())
    text.text("parallel_block", model.parallel_block == ParallelBlock::kOneNorm ? "one_norm" : "two_norms");
  text.text("norm", model.layer_norm ? "layer" : "rms");
  return text.str();
}

Model architecture_of(const Value& value, const Place& place) {
  if (value.kind != Value::Kind::kObject) place.fail("expected an object, found " + value.excerpt());
  Reader reader(value, place);
  const std::string id = reader.text("id");
  Model model = read_architecture(reader, {});
  reader.finish();
  model.id = id;
  return model;
}

}  // namespace moebius
