#include "models/architecture_reader.h"

#include <fmt/format.h>

namespace moebius {
namespace {

// An integer key: `present` is its value so far; required when there is no model yet.
int size_of(Reader& reader, std::string_view key, Range range, int present, bool required = false) {
  if (required) return static_cast<int>(reader.integer(key, range));
  return static_cast<int>(reader.integer(key, range, present));
}

Mla read_mla(Reader reader, const Mla& base) {
  Mla mla;
  mla.q_rank = size_of(reader, "q_rank", {0, kMaxHidden}, base.q_rank);
  mla.kv_rank = size_of(reader, "kv_rank", {1, kMaxHidden}, base.kv_rank, base.kv_rank == 0);
  mla.nope_dim = size_of(reader, "nope_dim", {1, kMaxHeadDim}, base.nope_dim, base.nope_dim == 0);
  mla.rope_dim = size_of(reader, "rope_dim", {0, kMaxHeadDim}, base.rope_dim);
  mla.v_dim = size_of(reader, "v_dim", {1, kMaxHeadDim}, base.v_dim, base.v_dim == 0);
  reader.finish();
  return mla;
}

Indexer read_indexer(Reader reader, const Indexer& base) {
  const bool empty = base.heads == 0;
  Indexer indexer;
  indexer.heads = size_of(reader, "heads", {0, kMaxHeads}, base.heads, empty);
  indexer.head_dim = size_of(reader, "head_dim", {1, kMaxHeadDim}, base.head_dim, empty);
  indexer.top = size_of(reader, "top", {1, kMaxLength}, base.top, empty);
  reader.finish();
  return indexer.heads > 0 ? indexer : Indexer{};
}

Experts read_experts(Reader reader, const Experts& base) {
  const bool empty = base.routed == 0;
  Experts experts;
  experts.routed = size_of(reader, "routed", {0, kMaxExperts}, base.routed, empty);
  experts.active = size_of(reader, "active", {1, kMaxExperts}, base.active, empty);
  experts.width = size_of(reader, "width", {1, kMaxWidth}, base.width, empty);
  experts.shared = size_of(reader, "shared", {0, kMaxShared}, base.shared);
  experts.shared_width = size_of(reader, "shared_width", {0, kMaxWidth}, base.shared_width);
  experts.shared_gate = reader.boolean("shared_gate", base.shared_gate);
  experts.groups = size_of(reader, "groups", {1, kMaxExperts}, base.groups);
  experts.active_groups = size_of(reader, "active_groups", {1, kMaxExperts}, base.active_groups);
  experts.score = reader.choice<GateScore>(
      "score", {{"softmax", GateScore::kSoftmax}, {"sigmoid", GateScore::kSigmoid}}, base.score);
  experts.scale = reader.number("scale", {1e-6, 1e6}, base.scale);
  reader.finish();
  return experts;
}

DeltaNet read_delta(Reader reader, const DeltaNet& base) {
  const bool empty = !base.given();
  DeltaNet delta = base;
  delta.key_heads = size_of(reader, "key_heads", {1, kMaxHeads}, base.key_heads, empty);
  delta.value_heads = size_of(reader, "value_heads", {1, kMaxHeads}, base.value_heads, empty);
  delta.key_dim = size_of(reader, "key_dim", {1, kMaxHeadDim}, base.key_dim, empty);
  delta.value_dim = size_of(reader, "value_dim", {1, kMaxHeadDim}, base.value_dim, empty);
  delta.convolution = size_of(reader, "convolution", {2, kMaxConvolution}, base.convolution, empty);
  reader.finish();
  return delta;
}

void read_attention(Reader& reader, Model& model, bool empty) {
  const std::vector<std::pair<std::string_view, AttentionKind>> kinds = {
      {"mha", AttentionKind::kMha}, {"gqa", AttentionKind::kGqa}, {"mla", AttentionKind::kMla}};
  model.heads = size_of(reader, "heads", {1, kMaxHeads}, model.heads, empty);
  model.attention =
      reader.choice<AttentionKind>("attention", kinds, empty ? std::nullopt : std::optional(model.attention));
  // Only grouped heads have a number of their own.
  const bool grouped = model.attention == AttentionKind::kGqa;
  model.kv_heads =
      size_of(reader, "kv_heads", {1, kMaxHeads}, grouped ? model.kv_heads : model.heads, grouped && empty);
  if (model.attention == AttentionKind::kMla) {
    if (model.mla == Mla{} || reader.has("mla")) model.mla = read_mla(reader.object("mla"), model.mla);
    if (std::optional<Reader> indexer = reader.optional_object("indexer"))
      model.indexer = read_indexer(*indexer, model.indexer);
    return;
  }
  model.mla = {};
  model.indexer = {};
  model.head_dim = size_of(reader, "head_dim", {1, kMaxHeadDim}, model.head_dim, model.head_dim == 0);
  model.sliding_window = size_of(reader, "sliding_window", {0, kMaxLength}, model.sliding_window);
  model.attention_chunk = size_of(reader, "attention_chunk", {0, kMaxLength}, model.attention_chunk);
  model.full_attention_every =
      size_of(reader, "full_attention_every", {0, kMaxLayers}, model.full_attention_every);
  model.kv_share = size_of(reader, "kv_share", {1, kMaxLayers}, model.kv_share);
  model.rotary_dim = size_of(reader, "rotary_dim", {0, kMaxHeadDim}, model.rotary_dim);
  model.no_rotary_every = size_of(reader, "no_rotary_every", {0, kMaxLayers}, model.no_rotary_every);
  model.output_gate = reader.boolean("output_gate", model.output_gate);
  if (reader.has("delta")) model.delta = read_delta(reader.object("delta"), model.delta);
}

// true: of each head, as most that have one.
QkNorm read_qk_norm(Reader& reader, QkNorm present) {
  if (!reader.has("qk_norm")) return present;
  if (reader.value("qk_norm").kind != Value::Kind::kString)
    return reader.boolean("qk_norm") ? QkNorm::kPerHead : QkNorm::kNone;
  return reader.choice<QkNorm>("qk_norm", {{"per_head", QkNorm::kPerHead}, {"per_layer", QkNorm::kPerLayer}});
}

// true: of one norm, as most that have such blocks.
ParallelBlock read_parallel_block(Reader& reader, ParallelBlock present) {
  if (!reader.has("parallel_block")) return present;
  if (reader.value("parallel_block").kind != Value::Kind::kString)
    return reader.boolean("parallel_block") ? ParallelBlock::kOneNorm : ParallelBlock::kNone;
  return reader.choice<ParallelBlock>(
      "parallel_block", {{"one_norm", ParallelBlock::kOneNorm}, {"two_norms", ParallelBlock::kTwoNorms}});
}

// Which layers have experts, of a model that has none.
void refuse_without_experts(const Reader& reader, const Model& model) {
  if (model.experts.routed > 0) return;
  const auto refuse = [&](const char* key, bool says) {
    if (reader.has(key) && says)
      reader.place_of(key).fail(fmt::format("\"{}\" counts only with \"experts\"", key));
  };
  refuse("first_dense", model.first_dense > 0);
  refuse("moe_step", model.moe_step > 1);
}

}  // namespace

Model read_architecture(Reader& reader, const Model& base) {
  const bool empty = base.layers == 0;
  Model model = base;
  model.layers = size_of(reader, "layers", {1, kMaxLayers}, base.layers, empty);
  model.hidden = size_of(reader, "hidden", {1, kMaxHidden}, base.hidden, empty);
  model.vocabulary = size_of(reader, "vocabulary", {1, kMaxVocabulary}, base.vocabulary, empty);
  read_attention(reader, model, empty);
  model.dense_width = size_of(reader, "dense_width", {0, kMaxWidth}, base.dense_width);
  if (std::optional<Reader> experts = reader.optional_object("experts")) {
    model.experts = read_experts(*experts, base.experts);
  }
  model.first_dense = size_of(reader, "first_dense", {0, kMaxLayers}, base.first_dense);
  model.moe_step = size_of(reader, "moe_step", {1, kMaxLayers}, base.moe_step);
  refuse_without_experts(reader, model);
  model.mtp_layers = size_of(reader, "mtp_layers", {0, 100}, base.mtp_layers);
  model.learned_positions = size_of(reader, "learned_positions", {0, kMaxLength}, base.learned_positions);
  model.gated = reader.boolean("gated", base.gated);
  model.tied_embeddings = reader.boolean("tied_embeddings", base.tied_embeddings);
  model.biases = reader.choice<Biases>(
      "biases", {{"none", Biases::kNone}, {"qkv", Biases::kQkv}, {"all", Biases::kAll}}, base.biases);
  model.qk_norm = read_qk_norm(reader, base.qk_norm);
  model.parallel_block = read_parallel_block(reader, base.parallel_block);
  model.layer_norm = reader.choice<bool>("norm", {{"rms", false}, {"layer", true}}, base.layer_norm);
  require_consistent(model, reader.place());
  return model;
}

void require_consistent(const Model& model, const Place& place) {
  const std::optional<Inconsistency> found = inconsistency(model);
  if (!found) return;
  Place at = place;
  at.pointer += "/" + found->key;
  at.fail(found->sentence);
}

}  // namespace moebius
