// The relations that the sizes of an architecture must keep. Ranges of single numbers are the readers'
// business.
#include <fmt/format.h>

#include "models/model.h"

namespace moebius {
namespace {

using Finding = std::optional<Inconsistency>;

Finding indexer(const Model& model) {
  const Indexer& indexer = model.indexer;
  if (!model.is_sparse()) return {};
  if (model.mla.q_rank < 1)
    return Inconsistency{"indexer",
                         "an indexer reads the latent of queries: it needs a q_rank of at least 1"};
  if (indexer.head_dim <= model.mla.rope_dim) {
    return Inconsistency{"indexer/head_dim",
                         fmt::format("head_dim {} is not more than the {} columns that turn",
                                     indexer.head_dim, model.mla.rope_dim)};
  }
  return {};
}

Finding attention(const Model& model) {
  if (model.attention == AttentionKind::kMla) {
    const Mla& mla = model.mla;
    if (mla.kv_rank < 1) return Inconsistency{"mla/kv_rank", "mla attention needs a kv_rank of at least 1"};
    if (mla.nope_dim < 1)
      return Inconsistency{"mla/nope_dim", "mla attention needs a nope_dim of at least 1"};
    if (mla.v_dim < 1) return Inconsistency{"mla/v_dim", "mla attention needs a v_dim of at least 1"};
    if (model.kv_heads != model.heads) {
      return Inconsistency{"kv_heads", fmt::format("mla means as many kv_heads as heads, found {} and {}",
                                                   model.kv_heads, model.heads)};
    }
    if (model.sliding_window > 0)
      return Inconsistency{"sliding_window", "mla attention has no sliding window"};
    if (model.kv_share > 1)
      return Inconsistency{"kv_share", "layers with mla attention cannot share keys and values"};
    if (model.no_rotary_every > 0)
      return Inconsistency{"no_rotary_every", "mla attention turns its rotary columns in all layers"};
    return indexer(model);
  }
  if (model.is_sparse()) return Inconsistency{"indexer", "only mla attention has an indexer"};
  if (model.head_dim < 1) return Inconsistency{"head_dim", "attention needs a head_dim of at least 1"};
  if (model.kv_heads < 1) return Inconsistency{"kv_heads", "attention needs at least 1 of kv_heads"};
  if (model.heads % model.kv_heads != 0) {
    return Inconsistency{
        "kv_heads", fmt::format("heads {} are not divisible by kv_heads {}", model.heads, model.kv_heads)};
  }
  if (model.attention == AttentionKind::kMha && model.heads != model.kv_heads) {
    return Inconsistency{"attention",
                         fmt::format("mha means as many kv_heads as heads, found {} and {}; expected \"gqa\"",
                                     model.kv_heads, model.heads)};
  }
  if (model.sliding_window > 0 && model.attention_chunk > 0) {
    return Inconsistency{"attention_chunk", "a model has a sliding_window or an attention_chunk, not both"};
  }
  if (model.rotary_dim > model.head_dim || model.rotary_dim % 2 != 0) {
    return Inconsistency{"rotary_dim", fmt::format("rotary_dim {} is not an even part of head_dim {}",
                                                   model.rotary_dim, model.head_dim)};
  }
  if (model.no_rotary_every > 0 && model.learned_positions > 0) {
    return Inconsistency{"no_rotary_every",
                         fmt::format("no_rotary_every {} takes rotary positions off, where they are learned "
                                     "(learned_positions {})",
                                     model.no_rotary_every, model.learned_positions)};
  }
  return {};
}

Finding delta(const Model& model) {
  const DeltaNet& delta = model.delta;
  if (model.attention == AttentionKind::kMla)
    return Inconsistency{"delta", "delta networks stand beside mha or gqa attention, not mla"};
  if (delta.value_heads % delta.key_heads != 0) {
    return Inconsistency{"delta/value_heads", fmt::format("value_heads {} are not divisible by key_heads {}",
                                                          delta.value_heads, delta.key_heads)};
  }
  if (model.full_attention_every < 1 || model.full_attention_every > model.layers) {
    return Inconsistency{"full_attention_every",
                         fmt::format("delta networks need an attention layer among their {} layers, found "
                                     "full_attention_every {}",
                                     model.layers, model.full_attention_every)};
  }
  return {};
}

Finding parallel_block(const Model& model) {
  if (model.attention == AttentionKind::kMla)
    return Inconsistency{"parallel_block", "mha or gqa attention stands beside an MLP, not mla"};
  if (model.delta.given())
    return Inconsistency{"parallel_block", "attention stands beside an MLP, delta networks do not"};
  if (model.experts.routed > 0) {
    return Inconsistency{
        "parallel_block",
        fmt::format("attention stands beside a dense MLP, found {} routed experts", model.experts.routed)};
  }
  return {};
}

Finding groups(const Experts& experts) {
  if (experts.routed % experts.groups != 0) {
    return Inconsistency{"experts/groups", fmt::format("routed experts {} are not divisible by groups {}",
                                                       experts.routed, experts.groups)};
  }
  if (experts.active_groups > experts.groups) {
    return Inconsistency{"experts/active_groups", fmt::format("active_groups {} are more than groups {}",
                                                              experts.active_groups, experts.groups)};
  }
  if (experts.active < experts.active_groups) {
    return Inconsistency{"experts/active", fmt::format("active experts {} are fewer than active_groups {}",
                                                       experts.active, experts.active_groups)};
  }
  const int reachable = experts.routed / experts.groups * experts.active_groups;
  if (reachable < experts.active) {
    return Inconsistency{"experts/active",
                         fmt::format("active experts {} are more than the {} in {} of {} groups",
                                     experts.active, reachable, experts.active_groups, experts.groups)};
  }
  return {};
}

Finding experts(const Experts& experts) {
  if (experts.active < 1)
    return Inconsistency{"experts/active", "a model with routed experts needs at least 1 active"};
  if (experts.active > experts.routed) {
    return Inconsistency{"experts/active", fmt::format("active experts {} are more than routed experts {}",
                                                       experts.active, experts.routed)};
  }
  if (experts.width < 1) return Inconsistency{"experts/width", "routed experts need a width of at least 1"};
  if ((experts.shared > 0) != (experts.shared_width > 0)) {
    return Inconsistency{"experts/shared_width",
                         fmt::format("shared experts {} do not go with shared_width {}", experts.shared,
                                     experts.shared_width)};
  }
  if (experts.shared_gate && experts.shared == 0)
    return Inconsistency{"experts/shared_gate",
                         "a gate of shared experts needs at least 1 shared, found none"};
  return groups(experts);
}

Finding layers(const Model& model) {
  if (model.experts.routed > 0 && model.first_dense >= model.layers) {
    return Inconsistency{"first_dense", fmt::format("first_dense {} leaves none of the {} layers for experts",
                                                    model.first_dense, model.layers)};
  }
  if (model.num_moe_layers() < model.layers && model.dense_width < 1) {
    return Inconsistency{"dense_width",
                         fmt::format("{} of {} layers are dense and need a dense_width of at least 1",
                                     model.layers - model.num_moe_layers(), model.layers)};
  }
  return {};
}

}  // namespace

Finding inconsistency(const Model& model) {
  if (Finding found = attention(model)) return found;
  if (model.delta.given()) {
    if (Finding found = delta(model)) return found;
  }
  if (model.is_parallel()) {
    if (Finding found = parallel_block(model)) return found;
  }
  if (model.experts.routed > 0) {
    if (Finding found = experts(model.experts)) return found;
  }
  return layers(model);
}

}  // namespace moebius
