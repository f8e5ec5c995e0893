#include "models/model.h"

#include <catch2/catch.hpp>

#include "models/layer_math.h"

namespace moebius {
namespace {

Model small_dense() {
  Model model;
  model.layers = 2;
  model.hidden = 8;
  model.heads = model.kv_heads = 2;
  model.head_dim = 4;
  model.dense_width = 16;
  model.vocabulary = 10;
  return model;
}

Model small_moe() {
  Model model = small_dense();
  model.layers = 4;
  model.first_dense = 1;
  model.experts = {.routed = 8, .active = 2, .shared = 1, .width = 4, .shared_width = 4};
  return model;
}

std::string wrong(const Model& model) {
  const auto found = inconsistency(model);
  return found ? found->key + ": " + found->sentence : "";
}

}  // namespace

TEST_CASE("norms of queries and keys have the weights of a head each, or of all heads") {
  Model model = small_dense();  // of 2 layers, 2 heads of 4
  const double without = count_parameters(model).norms;
  model.qk_norm = QkNorm::kPerHead;
  CHECK(count_parameters(model).norms == without + 2 * (4 + 4));
  model.qk_norm = QkNorm::kPerLayer;
  CHECK(count_parameters(model).norms == without + 2 * (8 + 8));
  model.attention = AttentionKind::kGqa;
  model.kv_heads = 1;
  CHECK(count_parameters(model).norms == without + 2 * (8 + 4));
}

TEST_CASE("parameters of a small dense model, matrix by matrix") {
  const ParameterCount count = count_parameters(small_dense());
  CHECK(count.embedding == 80);  // 10 x 8
  CHECK(count.head == 80);
  CHECK(count.attention == 2 * 4 * 64);   // q, k, v, o of 8 x 8 in 2 layers
  CHECK(count.dense_mlp == 2 * 3 * 128);  // gate, up, down of 8 x 16
  CHECK(count.norms == 2 * 16 + 8);       // two norms a layer, one at the end
  CHECK(count.total() == 80 + 80 + 512 + 768 + 40);
  CHECK(active_parameters(small_dense()) == count.total());
}

TEST_CASE("tied tables are one matrix") {
  Model model = small_dense();
  model.tied_embeddings = true;
  CHECK(count_parameters(model).head == 0);
  // The head uses the shared table, so it counts unless the head is left out.
  CHECK(active_parameters(model, CountedTables::kHead) == count_parameters(model).total());
  CHECK(active_parameters(model, CountedTables::kNone) == count_parameters(model).total() - 80);
}

TEST_CASE("a GPT layer has 12 h^2 + 13 h parameters") {
  // Narayanan et al. 2021, eq. 2: 4h^2 attention, 8h^2 MLP; biases 3h + h + 4h + h, two norms of 2h each.
  Model model = small_dense();
  model.dense_width = 32;
  model.gated = false;
  model.biases = Biases::kAll;
  model.layer_norm = model.tied_embeddings = true;
  model.learned_positions = 100;
  const double h = 8;
  CHECK(count_parameters(model).total() == 2 * (12 * h * h + 13 * h) + (10 + 100) * h + 2 * h);
}

TEST_CASE("a layer whose attention and MLP share a norm has one norm less, and the same work") {
  Model model = small_dense();  // of 2 layers
  const double norms = count_parameters(model).norms, flops = forward_flops_per_token(model, 16, true).value;
  model.parallel_block = ParallelBlock::kTwoNorms;
  CHECK(count_parameters(model).norms == norms);
  model.parallel_block = ParallelBlock::kOneNorm;
  CHECK(count_parameters(model).norms == norms - 2 * 8);
  CHECK(forward_flops_per_token(model, 16, true).value == flops);
  CHECK(wrong(model).empty());
}

TEST_CASE("attention stands beside a dense MLP, and is mha or gqa") {
  Model model = small_moe();
  model.parallel_block = ParallelBlock::kTwoNorms;
  CHECK(wrong(model) == "parallel_block: attention stands beside a dense MLP, found 8 routed experts");
  model = small_dense();
  model.parallel_block = ParallelBlock::kOneNorm;
  model.attention = AttentionKind::kMla;
  model.mla = {.q_rank = 4, .kv_rank = 4, .nope_dim = 4, .rope_dim = 2, .v_dim = 4};
  CHECK(wrong(model) == "parallel_block: mha or gqa attention stands beside an MLP, not mla");
}

TEST_CASE("experts stand in the layers after the leading dense ones, at every step") {
  Model model = small_moe();
  CHECK_FALSE(model.is_moe_layer(0));
  CHECK(model.is_moe_layer(1));
  CHECK(model.num_moe_layers() == 3);
  model.moe_step = 2;  // layers 1 and 3, as in Llama 4 Maverick
  CHECK(model.is_moe_layer(1));
  CHECK_FALSE(model.is_moe_layer(2));
  CHECK(model.is_moe_layer(3));
  CHECK(model.num_moe_layers() == 2);
}

TEST_CASE("only active experts count as active") {
  const Model model = small_moe();
  const ParameterCount count = count_parameters(model);
  CHECK(count.routed_experts == 3 * 8 * 96);  // 3 layers, 8 experts of 3 x 8 x 4
  CHECK(count.shared_experts == 3 * 96);
  CHECK(count.router == 3 * 64);
  CHECK(active_parameters(model) == count.total() - 3 * 6 * 96);
}

TEST_CASE("the gate of shared experts is one row a layer, which every token uses") {
  Model model = small_moe();
  const ParameterCount before = count_parameters(model);
  const double flops = layer_flops_per_token(model, 1, 16, true).value;
  const double of_dense = layer_flops_per_token(model, 0, 16, true).value;
  model.experts.shared_gate = true;
  CHECK(count_parameters(model).shared_experts == before.shared_experts + 3 * 8);  // 3 layers, 1 x 8
  CHECK(active_parameters(model) == active_parameters(small_moe()) + 3 * 8);
  CHECK(layer_flops_per_token(model, 1, 16, true).value == flops + 2 * 8);
  CHECK(layer_flops_per_token(model, 0, 16, true).value == of_dense);
  model.mtp_layers = 1;
  Model without = model;
  without.experts.shared_gate = false;
  CHECK(count_parameters(model).mtp == count_parameters(without).mtp + 8);
}

TEST_CASE("biases of the fused map of queries, keys and values are computed, no others") {
  Model model = small_moe();
  CHECK_FALSE(model.adds_qkv_bias());
  model.biases = Biases::kQkv;
  CHECK(model.adds_qkv_bias());
  model.attention = AttentionKind::kMla;
  CHECK_FALSE(model.adds_qkv_bias());
  model.attention = AttentionKind::kGqa;
  model.biases = Biases::kAll;
  CHECK_FALSE(model.adds_qkv_bias());
}

TEST_CASE("MLA counts down and up projections, and their norms") {
  Model model = small_dense();
  model.attention = AttentionKind::kMla;
  model.mla = {.q_rank = 6, .kv_rank = 5, .nope_dim = 4, .rope_dim = 2, .v_dim = 3};
  // q: 8x6 + 6x(2*6); latent: 8x(5+2); up: 5x2x(4+3); o: (2*3)x8
  CHECK(count_parameters(model).attention == 2 * (48 + 72 + 56 + 70 + 48));
  CHECK(count_parameters(model).norms == 2 * (16 + 6 + 5) + 8);
  CHECK(model.query_dim() == 12);
  CHECK(model.value_dim() == 6);
  CHECK(kv_elements_per_token(model) == 2 * (5 + 2));
  model.mla.q_rank = 0;
  CHECK(count_parameters(model).attention == 2 * (96 + 56 + 70 + 48));
}

TEST_CASE("an indexer has maps of its own, a key in the cache, and work over all pairs") {
  Model model = small_dense();
  model.attention = AttentionKind::kMla;
  model.mla = {.q_rank = 6, .kv_rank = 5, .nope_dim = 4, .rope_dim = 2, .v_dim = 3};
  Model sparse = model;
  sparse.indexer = {.heads = 3, .head_dim = 4, .top = 10};
  const ParameterCount before = count_parameters(model), after = count_parameters(sparse);
  // queries: 6 x (3*4); key: 8x4; weights of heads: 8x3; norm: scale and bias of 4
  CHECK(after.attention == before.attention + 2 * (72 + 32 + 24));
  CHECK(after.norms == before.norms + 2 * 8);
  CHECK(kv_elements_per_token(sparse) == kv_elements_per_token(model) + 2 * 4);
  const auto of_layer = [](const Model& of, std::int64_t length) {
    return layer_flops_per_token(of, 0, length, true).value * static_cast<double>(length);
  };
  // Ten tokens see all their keys; of twenty the last ten see ten, 155 pairs of 210.
  const double maps = 2 * (72 + 32 + 24), scores = 2 * 3 * 4, pair = 2 * 2 * (6 + 3);
  CHECK(of_layer(sparse, 10) - of_layer(model, 10) == Approx(10 * maps + 55 * scores));
  CHECK(of_layer(sparse, 20) - of_layer(model, 20) == Approx(20 * maps + 210 * scores - 55 * pair));
}

TEST_CASE("layers that share keys and values own one projection between them") {
  Model model = small_dense();
  const double alone = count_parameters(model).attention;
  model.kv_share = 2;
  CHECK(count_parameters(model).attention == alone - 2 * 64);
  CHECK(kv_elements_per_token(model) == 2 * 8);
}

TEST_CASE("delta networks have maps, a convolution and states of their own") {
  Model model = small_dense();
  model.layers = 4;
  model.full_attention_every = 2;
  model.output_gate = true;
  model.delta = {.key_heads = 1, .value_heads = 2, .key_dim = 3, .value_dim = 5, .convolution = 4};
  // 8 x (3 + 3 + 10 columns that are convolved, 10 of the gate, 2 x 2 numbers), 16 x 4 of the convolution, 2
  // x 2 decays, a norm of 5, back 10 x 8; attention beside its four maps 8 x 8 of the gate
  CHECK(count_parameters(model).attention == 2 * (8 * 30 + 64 + 4 + 5 + 80) + 2 * 5 * 64);
  CHECK(kv_elements_per_token(model) == 2 * 2 * 8);
  // 2 layers: 2 matrices of 3 x 5 in FP32, 3 rows of 16 columns in BF16
  CHECK(state_bytes_per_sequence(model).value == 2 * (2 * 15 * 4 + 3 * 16 * 2));
  CHECK(state_bytes_per_sequence(small_dense()).value == 0);
}

TEST_CASE("delta networks need attention layers among them, and value heads that share key heads") {
  Model model = small_dense();
  model.delta = {.key_heads = 2, .value_heads = 4, .key_dim = 4, .value_dim = 4, .convolution = 4};
  CHECK(wrong(model) ==
        "full_attention_every: delta networks need an attention layer among their 2 layers, found "
        "full_attention_every 0");
  model.full_attention_every = 2;
  CHECK(wrong(model).empty());
  model.delta.value_heads = 3;
  CHECK(wrong(model) == "delta/value_heads: value_heads 3 are not divisible by key_heads 2");
  model.delta.value_heads = 4;
  model.rotary_dim = 3;
  CHECK(wrong(model) == "rotary_dim: rotary_dim 3 is not an even part of head_dim 4");
}

TEST_CASE("layers of a model whose positions are learned turn neither queries nor keys") {
  Model model = small_moe();
  CHECK(model.rotates(0));
  model.learned_positions = 100;  // GPT-2: wpe, added to wte before the first layer
  for (int layer = 0; layer < model.layers; ++layer) CHECK_FALSE(model.rotates(layer));
}

TEST_CASE("full_attention_every frees the last of each n layers from the window") {
  Model model = small_moe();
  model.sliding_window = 128;
  CHECK(model.window(3) == 128);
  model.full_attention_every = 2;
  CHECK(model.window(0) == 128);
  CHECK(model.window(1) == 0);
  CHECK(model.window(3) == 0);
}

TEST_CASE("forward FLOPs are twice the active weights and the attention over the pairs") {
  const Model model = small_moe();
  const double weights = active_parameters(model, CountedTables::kHead) - count_parameters(model).norms;
  // 16 tokens: 136 pairs, 8.5 a token; 2 heads of 4 + 4, 2 FLOPs, 4 layers
  CHECK(forward_flops_per_token(model, 16, true).value == Approx(2 * weights + 8.5 * 2 * 8 * 2 * 4));
  CHECK(forward_flops_per_token(model, 16, false).value == Approx(2 * weights + 16.0 * 2 * 8 * 2 * 4));
}

TEST_CASE("a window as long as the sequence changes nothing, a shorter one saves pairs") {
  Model model = small_dense();
  const double full = forward_flops_per_token(model, 64, true).value;
  model.sliding_window = 64;
  CHECK(forward_flops_per_token(model, 64, true).value == full);
  model.sliding_window = 8;
  CHECK(forward_flops_per_token(model, 64, true).value < full);
}

TEST_CASE("chunked attention computes the chunks as sequences of their own") {
  Model model = small_dense();
  model.attention_chunk = 16;
  const double chunked = forward_flops_per_token(model, 64, true).value;
  Model whole = small_dense();
  CHECK(chunked == Approx(forward_flops_per_token(whole, 16, true).value));
  // 40 = 16 + 16 + 8: pairs 136 + 136 + 36 over 40 tokens
  const double weights = forward_flops_per_token(whole, 1, true).value - 2 * 2 * 8 * 2.0;
  CHECK(forward_flops_per_token(model, 40, true).value == Approx(weights + 308.0 / 40 * 2 * 8 * 2 * 2));
}

TEST_CASE("an MTP module adds a layer, a projection of two states to one and the head again") {
  Model model = small_moe();
  const double without = forward_flops_per_token(model, 16, true).value;
  model.mtp_layers = 1;
  Model longer = small_moe();
  longer.layers = 5;
  const double layer = forward_flops_per_token(longer, 16, true).value - without;
  CHECK(forward_flops_per_token(model, 16, true).value == Approx(without + layer + 2 * (2 * 64 + 80)));
  // parameters: layer with its two norms, projection, norms of state and embedding and before the head
  const double layer_parameters = count_parameters(longer).total() - count_parameters(small_moe()).total();
  CHECK(count_parameters(model).mtp == layer_parameters + 128 + 3 * 8);
}

TEST_CASE("sizes that do not go together are named") {
  CHECK(wrong(small_moe()).empty());
  Model model = small_dense();
  model.attention = AttentionKind::kGqa;
  model.heads = 10;
  model.kv_heads = 3;
  CHECK(wrong(model) == "kv_heads: heads 10 are not divisible by kv_heads 3");
  model = small_dense();
  model.kv_heads = 1;
  CHECK(wrong(model) == "attention: mha means as many kv_heads as heads, found 1 and 2; expected \"gqa\"");
  model = small_moe();
  model.experts.active = 9;
  CHECK(wrong(model) == "experts/active: active experts 9 are more than routed experts 8");
  model = small_moe();
  model.experts.groups = 3;
  CHECK(wrong(model) == "experts/groups: routed experts 8 are not divisible by groups 3");
  model.experts.groups = 4;
  model.experts.active_groups = 5;
  CHECK(wrong(model) == "experts/active_groups: active_groups 5 are more than groups 4");
  model.experts.active_groups = 3;
  CHECK(wrong(model) == "experts/active: active experts 2 are fewer than active_groups 3");
  model.experts.active_groups = 1;
  model.experts.active = 3;
  CHECK(wrong(model) == "experts/active: active experts 3 are more than the 2 in 1 of 4 groups");
  model = small_moe();
  model.first_dense = 4;
  CHECK(wrong(model) == "first_dense: first_dense 4 leaves none of the 4 layers for experts");
  model = small_moe();
  model.dense_width = 0;
  CHECK(wrong(model) == "dense_width: 1 of 4 layers are dense and need a dense_width of at least 1");
  model = small_moe();
  model.experts.shared = 0;
  CHECK(wrong(model) == "experts/shared_width: shared experts 0 do not go with shared_width 4");
  model.experts.shared_width = 0;
  model.experts.shared_gate = true;
  CHECK(wrong(model) == "experts/shared_gate: a gate of shared experts needs at least 1 shared, found none");
}

}  // namespace moebius
