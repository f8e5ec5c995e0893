#include "models/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"

namespace moebius {
namespace {

// Weight matrices and biases of a part of one layer, in elements.
struct Part {
  double matrix = 0;
  double bias = 0;
  double total() const { return matrix + bias; }
};

bool owns_keys(const Model& model, int layer) {
  return (layer + model.first_layer) % model.kv_share == 0;
}

// Maps of the indexer's queries, key and weights of heads.
double indexer_maps(const Model& model) {
  const Indexer& indexer = model.indexer;
  return static_cast<double>(indexer.heads) * indexer.head_dim * model.mla.q_rank +
         static_cast<double>(model.hidden) * (indexer.head_dim + indexer.heads);
}

Part mla_attention(const Model& model) {
  const Mla& mla = model.mla;
  const double hidden = model.hidden;
  const double queries = model.query_dim();
  const double query_maps = mla.q_rank > 0 ? hidden * mla.q_rank + mla.q_rank * queries : hidden * queries;
  const double latent = hidden * (mla.kv_rank + mla.rope_dim);
  const double up = static_cast<double>(mla.kv_rank) * model.heads * (mla.nope_dim + mla.v_dim);
  return {.matrix = query_maps + latent + up + hidden * model.value_dim() + indexer_maps(model), .bias = 0};
}

// Maps to queries, keys, values and their gate, to two numbers a value head, and back.
double delta_maps(const Model& model) {
  const DeltaNet& delta = model.delta;
  const double columns = delta.convolved_columns() + 2.0 * delta.value_columns() + 2.0 * delta.value_heads;
  return model.hidden * columns;
}

Part delta_network(const Model& model) {
  const DeltaNet& delta = model.delta;
  const double convolution = static_cast<double>(delta.convolved_columns()) * delta.convolution;
  // A decay and a bias a value head, and the weight of the norm that all heads share.
  return {.matrix = delta_maps(model), .bias = convolution + 2.0 * delta.value_heads + delta.value_dim};
}

Part attention(const Model& model, int layer) {
  if (model.is_delta_layer(layer)) return delta_network(model);
  if (model.attention == AttentionKind::kMla) return mla_attention(model);
  const double hidden = model.hidden;
  const double queries = model.query_dim();
  const double keys_values = owns_keys(model, layer) ? 2.0 * model.kv_heads * model.head_dim : 0;
  const double gate = model.output_gate ? queries : 0;
  Part part{.matrix = hidden * (queries + gate + keys_values) + model.value_dim() * hidden, .bias = 0};
  if (model.biases != Biases::kNone) part.bias += queries + keys_values;
  if (model.biases == Biases::kAll) part.bias += hidden;
  return part;
}

Part mlp(const Model& model, double width) {
  const double inner = (model.gated ? 2 : 1) * width;
  return {.matrix = model.hidden * (inner + width),
          .bias = model.biases == Biases::kAll ? inner + model.hidden : 0};
}

// Of one layer: the map to one number a token, where the shared experts have it.
double shared_gate(const Model& model) {
  return model.experts.shared_gate ? model.hidden : 0;
}

// Of one layer, wherever they stand.
double shared_experts(const Model& model) {
  const Experts& experts = model.experts;
  const double together = experts.shared > 0 ? mlp(model, experts.shared_width).total() : 0;
  return together + shared_gate(model) + experts.always * mlp(model, experts.width).total();
}

Part router(const Model& model) {
  const double experts = model.experts.routed;
  return {.matrix = model.hidden * experts, .bias = model.biases == Biases::kAll ? experts : 0};
}

double norm(const Model& model, double width) {
  return (model.layer_norm ? 2 : 1) * width;
}

double qk_norms(const Model& model) {
  const double heads[] = {0, 2, 1.0 * model.heads + model.kv_heads};
  return heads[static_cast<int>(model.qk_norm)] * model.key_head_dim();
}

double layer_norms(const Model& model, int layer) {
  const int of_stream = model.parallel_block == ParallelBlock::kOneNorm ? 1 : 2;
  double sum = of_stream * norm(model, model.hidden);
  if (model.is_delta_layer(layer)) return sum;
  if (model.attention == AttentionKind::kMla)
    sum += model.mla.q_rank + model.mla.kv_rank + 2.0 * model.indexer.head_dim;  // the indexer's: and a bias
  return sum + qk_norms(model);
}

// The module of DeepSeek-V3, section 2.2: norms of the hidden state and of the next token's embedding, a
// projection of both to one, a layer like the last one, and a norm before the shared output head.
ParameterCount mtp_module(const Model& model) {
  const double hidden = model.hidden;
  ParameterCount count;
  const int last = model.layers - 1, like = model.delta.given() ? last : 0;
  count.attention = attention(model, like).total();
  count.norms = layer_norms(model, like) + 3 * norm(model, hidden);
  count.mtp = 2 * hidden * hidden;  // the projection, here apart from the layer
  if (!model.is_moe_layer(last)) {
    count.dense_mlp = mlp(model, model.dense_width).total();
    return count;
  }
  count.routed_experts = model.experts.routed * mlp(model, model.experts.width).total();
  count.shared_experts = shared_experts(model);
  count.router = router(model).total();
  return count;
}

double sum_of_parts(const ParameterCount& count) {
  return count.total() + count.mtp;
}

// Multiply-adds of one token in the weights of one layer.
double layer_products(const Model& model, int layer) {
  const double weights = attention(model, layer).matrix;
  if (!model.is_moe_layer(layer)) return weights + mlp(model, model.dense_width).matrix;
  const Experts& experts = model.experts;
  return weights + router(model).matrix + experts.active * mlp(model, experts.width).matrix +
         mlp(model, experts.shared_width).matrix + shared_gate(model);
}

// Query-key pairs of one head over a sequence of `length` tokens in one layer.
double layer_pairs(const Model& model, int layer, std::int64_t length, bool causal) {
  const auto pairs = [&](std::int64_t tokens) {
    const int chosen = model.indexer.top;
    const double seen = attention_pairs(
        {.m = tokens, .groups = 1, .kv = tokens, .window = chosen > 0 ? chosen : model.window(layer)});
    return causal ? seen : 2 * seen - static_cast<double>(tokens);
  };
  const std::int64_t chunk = model.chunk(layer);
  if (chunk == 0 || length <= chunk) return pairs(length);
  const std::int64_t whole = length / chunk, rest = length % chunk;
  return static_cast<double>(whole) * pairs(chunk) + (rest > 0 ? pairs(rest) : 0);
}

double pair_products(const Model& model) {
  return static_cast<double>(model.heads) * (model.key_head_dim() + model.value_head_dim());
}

// Of the scores that choose keys: over all pairs.
double indexer_products(const Model& model, std::int64_t length, bool causal) {
  const auto tokens = static_cast<double>(length);
  return (causal ? tokens * (tokens + 1) / 2 : tokens * tokens) * model.indexer.heads *
         model.indexer.head_dim;
}

bool has_full_attention(const Model& model, int layer) {
  return model.full_attention_every > 0 && (layer + model.first_layer + 1) % model.full_attention_every == 0;
}

}  // namespace

bool Model::is_moe_layer(int layer) const {
  const int behind = std::min(layer, layers - 1) + first_layer - first_dense;
  return experts.routed > 0 && behind >= 0 && behind % moe_step == 0;
}

int Model::num_moe_layers() const {
  int count = 0;
  for (int layer = 0; layer < layers; ++layer) count += is_moe_layer(layer);
  return count;
}

int Model::window(int layer) const {
  return has_full_attention(*this, layer) ? 0 : sliding_window;
}
int Model::chunk(int layer) const {
  return has_full_attention(*this, layer) ? 0 : attention_chunk;
}

bool Model::rotates(int layer) const {
  if (learned_positions > 0) return false;
  if (no_rotary_every > 0 && (layer + first_layer + 1) % no_rotary_every == 0) return false;
  return attention_chunk == 0 || !has_full_attention(*this, layer);
}

bool Model::adds_qkv_bias() const {
  return biases == Biases::kQkv && attention != AttentionKind::kMla;
}

bool Model::trains_qkv_bias() const {
  return biases != Biases::kNone && attention != AttentionKind::kMla;
}

bool Model::is_delta_layer(int layer) const {
  return delta.given() && !has_full_attention(*this, layer);
}
int Model::num_attention_layers() const {
  int count = 0;
  for (int layer = 0; layer < layers; ++layer) count += !is_delta_layer(layer);
  return count;
}

int Model::num_windowed_layers() const {
  int count = 0;
  for (int layer = 0; layer < layers; ++layer) count += window(layer) > 0 || chunk(layer) > 0;
  return count;
}

int Model::key_head_dim() const {
  return attention == AttentionKind::kMla ? mla.nope_dim + mla.rope_dim : head_dim;
}
int Model::value_head_dim() const {
  return attention == AttentionKind::kMla ? mla.v_dim : head_dim;
}
int Model::query_dim() const {
  return heads * key_head_dim();
}
int Model::value_dim() const {
  return heads * value_head_dim();
}

double ParameterCount::total() const {
  return embedding + head + attention + dense_mlp + routed_experts + shared_experts + router + norms;
}

ParameterCount count_parameters(const Model& model) {
  const double hidden = model.hidden;
  const double table = hidden * model.vocabulary;
  const double moe_layers = model.num_moe_layers();
  ParameterCount count;
  count.embedding = table + hidden * model.learned_positions;
  count.head = model.tied_embeddings ? 0 : table;
  count.norms = norm(model, hidden);
  for (int layer = 0; layer < model.layers; ++layer) {
    count.attention += attention(model, layer).total();
    count.norms += layer_norms(model, layer);
  }
  count.dense_mlp = (model.layers - moe_layers) * mlp(model, model.dense_width).total();
  if (moe_layers > 0) {
    count.routed_experts = moe_layers * model.experts.routed * mlp(model, model.experts.width).total();
    count.shared_experts = moe_layers * shared_experts(model);
    count.router = moe_layers * router(model).total();
  }
  if (model.mtp_layers > 0) count.mtp = model.mtp_layers * sum_of_parts(mtp_module(model));
  return count;
}

Model stage_of(const Model& model, int first, int layers) {
  CHECK(first >= 0 && layers > 0 && first + layers <= model.layers,
        fmt::format("layers {} to {} of {}", first, first + layers, model.layers));
  Model stage = model;
  stage.first_layer += first;
  stage.layers = layers;
  stage.mtp_layers = 0;
  return stage;
}

Model shared_among_routed(const Model& model) {
  Experts experts = model.experts;
  CHECK(!experts.shared_gate, model.id + ": routed experts have no gate of their own");
  CHECK(experts.routed > 0 && experts.shared > 0 && experts.shared_width == experts.shared * experts.width,
        fmt::format("{} shared experts of {} in all, routed ones of {}", experts.shared, experts.shared_width,
                    experts.width));
  experts.active += experts.shared;
  experts.always = experts.shared;
  experts.shared = experts.shared_width = 0;
  Model among = model;
  among.experts = experts;
  return among;
}

double active_parameters(const Model& model, CountedTables tables) {
  const ParameterCount count = count_parameters(model);
  const Experts& experts = model.experts;
  const double idle_share =
      experts.routed > 0 ? 1.0 - static_cast<double>(experts.active - experts.always) / experts.routed : 0;
  double active = count.total() - count.routed_experts * idle_share;
  // Tied tables are one matrix, which the output head uses: it counts unless the head is left out.
  if (tables != CountedTables::kAll && !model.tied_embeddings) active -= count.embedding;
  if (tables == CountedTables::kNone) active -= model.tied_embeddings ? count.embedding : count.head;
  return active;
}

Flops layer_flops_per_token(const Model& model, int layer, std::int64_t sequence_length, bool causal) {
  if (model.is_delta_layer(layer)) {
    const DeltaNet& delta = model.delta;
    const Shape tokens{.m = sequence_length,
                       .groups = 1,
                       .heads = delta.value_heads,
                       .kv_heads = delta.key_heads,
                       .head_dim = delta.key_dim,
                       .v_dim = delta.value_dim};
    return {2 * layer_products(model, layer) +
            op_flops(OpKind::kDeltaRule, tokens).value / static_cast<double>(sequence_length)};
  }
  const double attention = layer_pairs(model, layer, sequence_length, causal) * pair_products(model) +
                           indexer_products(model, sequence_length, causal);
  return {2 * (layer_products(model, layer) + attention / static_cast<double>(sequence_length))};
}

Flops head_flops_per_token(const Model& model, std::int64_t sequence_length, bool causal) {
  const double hidden = model.hidden;
  const double head = 2 * hidden * model.vocabulary, projection = 2 * 2 * hidden * hidden;
  if (model.mtp_layers == 0) return {head};
  const Flops layer = layer_flops_per_token(model, model.layers - 1, sequence_length, causal);
  return {head + model.mtp_layers * (layer.value + projection + head)};
}

Flops forward_flops_per_token(const Model& model, std::int64_t sequence_length, bool causal) {
  Flops flops = head_flops_per_token(model, sequence_length, causal);
  for (int layer = 0; layer < model.layers; ++layer)
    flops.value += layer_flops_per_token(model, layer, sequence_length, causal).value;
  return flops;
}

Flops product_flops_per_token(const Model& model) {
  Flops flops{2.0 * model.hidden * model.vocabulary};
  for (int layer = 0; layer < model.layers; ++layer) flops.value += 2 * layer_products(model, layer);
  return flops;
}

double kv_elements_per_token(const Model& model) {
  if (model.attention == AttentionKind::kMla) {
    return static_cast<double>(model.layers) *
           (model.mla.kv_rank + model.mla.rope_dim + model.indexer.head_dim);
  }
  const int owners = (model.num_attention_layers() + model.kv_share - 1) / model.kv_share;
  return 2.0 * owners * model.kv_heads * model.head_dim;
}

Bytes state_bytes_per_sequence(const Model& model) {
  const DeltaNet& delta = model.delta;
  if (!delta.given()) return {};
  const double matrices = static_cast<double>(delta.value_columns()) * delta.key_dim;
  const double rows = static_cast<double>(delta.convolved_columns()) * (delta.convolution - 1);
  return Bytes{(model.layers - model.num_attention_layers()) *
               (matrices * element_bytes(DType::kFp32) + rows * element_bytes(DType::kBf16))};
}

}  // namespace moebius
