#include "workloads/serving/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workloads/schedule/context_part.h"
#include "workloads/serving/cache_tensor.h"
#include "workloads/serving/delta_network.h"
#include "workloads/training/layers/head_exchange.h"

namespace moebius {
namespace {

struct Heads {
  int query = 0, kv = 0;  // on this rank
  int head_dim = 0, v_dim = 0;
};

class BatchAttention {
 public:
  BatchAttention(LayerWriter& writer, const CachedBatch& batch)
      : w_(writer),
        b_(batch),
        model_(writer.model()),
        tp_(writer.plan().tp),
        heads_(model_.heads / (by_heads() ? writer.plan().cp : 1)) {}

  TensorId write(TensorId normed) {
    return model_.attention == AttentionKind::kMla ? latent(normed) : grouped_query(normed);
  }

 private:
  // Ranks have cut the prompts, and each attends with some heads of all tokens.
  bool by_heads() const { return b_.whole != nullptr; }

  // Prompts that stand whole in the batch attend to themselves; all others to the cache.
  bool whole_prompts() const {
    const std::vector<BatchSequence>& sequences = b_.batch->sequences;
    return !b_.batch->decodes() && std::all_of(sequences.begin(), sequences.end(),
                                               [](const BatchSequence& s) { return s.past == 0; });
  }

  // The sequences that an attention sees: of the whole batch, or of one of its parts.
  BatchPtr seen(const BatchPtr& part) const {
    if (by_heads()) return b_.whole;
    if (model_.chunk(w_.builder().layer) > 0) return b_.local;
    return b_.parts.given() && part ? part : b_.batch;
  }
  TensorId transient(std::int64_t rows, std::int64_t columns, Role role, DType dtype = DType::kBf16) {
    return w_.builder().transient(rows, columns, dtype, role);
  }

  // Keys of the mean sequence; at least its queries.
  static std::int64_t mean_keys(const Batch& batch) {
    const auto sequences = static_cast<std::int64_t>(batch.sequences.size());
    std::int64_t keys = 0;
    for (const BatchSequence& sequence : batch.sequences) keys += sequence.length();
    return (keys + sequences - 1) / sequences;
  }

  Shape attention_shape(const Heads& heads, const Batch& batch) const {
    return {.m = batch.rows(),
            .groups = static_cast<std::int32_t>(batch.sequences.size()),
            .heads = heads.query,
            .kv_heads = heads.kv,
            .head_dim = heads.head_dim,
            .v_dim = heads.v_dim,
            .kv = mean_keys(batch),
            .window = model_.window(w_.builder().layer)};
  }

  TensorId rotary(TensorId x, int heads, int rotated) {
    return rotary(x, heads, rotated, *b_.batch, b_.index);
  }
  // `form`: Shape::k.
  TensorId rotary(TensorId x, int heads, int rotated, const Batch& batch, std::int32_t index,
                  std::int64_t form = 0) {
    const TensorId y = transient(w_.rows(x), w_.columns(x), Role::kRope);
    w_.emit({.kind = OpKind::kRotary,
             .role = Role::kRope,
             .batch = index,
             .shape = {.m = w_.rows(x),
                       .n = w_.columns(x),
                       .k = form,
                       .groups = static_cast<std::int32_t>(batch.sequences.size()),
                       .heads = heads,
                       .head_dim = rotated}},
            {x}, {y});
    return y;
  }

  // Of queries or keys, and before that their norm where the model has one.
  TensorId positions(TensorId x, int heads, Role norm, TensorId means) {
    const int rotated = model_.rotary_dim > 0 ? model_.rotary_dim : model_.head_dim;
    const TensorId normed = w_.query_key_norm(x, norm, heads, means);
    return model_.rotates(w_.builder().layer) ? rotary(normed, heads, rotated) : normed;
  }

  TensorId append(const std::vector<TensorId>& parts) {
    const TensorId cache =
        w_.builder().add(cache_tensor(model_, {tp_, b_.kv, b_.cache_rows}, w_.builder().layer));
    const std::int64_t columns = w_.columns(cache);
    w_.emit({.kind = OpKind::kCacheAppend,
             .role = Role::kCache,
             .batch = b_.index,
             .shape = {.m = w_.rows(parts[0]), .n = columns}},
            parts, {cache});
    return cache;
  }

  // Keys and values, or latents and rotary keys, of all sequences, where ranks have cut them: each reads its
  // share from its cache, and they gather it.
  std::pair<TensorId, TensorId> gathered(TensorId cache, std::int64_t first, std::int64_t second) {
    const int cp = w_.plan().cp;
    const std::int64_t share = (b_.batch->cut_keys + cp - 1) / cp;
    const auto [a, b] = read_back(cache, b_.index, share, {first, second});
    return {w_.gather_context(a), w_.gather_context(b)};
  }

  // Prompts: every sequence attends to itself, and to keys of its past where these are among k and v.
  TensorId over_prompts(const Heads& heads, TensorId q, TensorId k, TensorId v) {
    const std::int64_t m = w_.rows(q);
    const TensorId o = transient(m, std::int64_t{heads.query} * heads.v_dim, Role::kAttention);
    const TensorId lse = transient(m, heads.query, Role::kAttention, DType::kFp32);
    const BatchPtr batch = seen(b_.parts.blown_up);
    w_.emit({.kind = OpKind::kAttention,
             .dtype = b_.arithmetic,
             .role = Role::kAttention,
             .batch = w_.builder().add_batch(batch),
             .shape = attention_shape(heads, *batch)},
            {q, k, v}, {o, lse});
    return o;
  }

  // Over all keys, or those that are chosen.
  TensorId over_cache(const Heads& heads, double scale, TensorId q, TensorId cache,
                      TensorId chosen = kNoTensor) {
    const std::int64_t m = w_.rows(q);
    const TensorId o = transient(m, std::int64_t{heads.query} * heads.v_dim, Role::kAttention);
    const BatchPtr batch = seen(b_.parts.absorbed);
    Op op{.kind = OpKind::kPagedAttention,
          .dtype = batch->decodes() ? DType::kBf16 : b_.arithmetic,
          .role = Role::kAttention,
          .batch = w_.builder().add_batch(batch),
          .scale = static_cast<float>(scale),
          .shape = attention_shape(heads, *batch)};
    op.shape.n = w_.columns(cache) - model_.indexer.head_dim;
    if (chosen == kNoTensor) {
      w_.emit(op, {q, cache}, {o});
    } else {
      op.shape.k = w_.columns(chosen);
      w_.emit(op, {q, cache, chosen}, {o});
    }
    return o;
  }

  TensorId grouped_query(TensorId x) {
    // Fewer heads of keys than ranks: several ranks keep the same one.
    const Heads heads{model_.heads / tp_, std::max(1, model_.kv_heads / tp_), model_.head_dim,
                      model_.head_dim};
    const std::int64_t q_columns = std::int64_t{heads.query} * heads.head_dim;
    const std::int64_t kv_columns = std::int64_t{heads.kv} * heads.head_dim;
    std::vector<std::int64_t> columns = {q_columns, kv_columns, kv_columns};
    if (model_.output_gate) columns.push_back(q_columns);
    const std::int64_t all = std::accumulate(columns.begin(), columns.end(), std::int64_t{0});
    const TensorId qkv = w_.linear(x, {.role = Role::kQkv,
                                       .out = all * tp_,
                                       .in = model_.hidden,
                                       .cut = Cut::kColumns,
                                       .bias = model_.adds_qkv_bias()});
    const auto parts = w_.split(qkv, columns, Role::kQkv);
    const TensorId means = w_.query_key_means(parts[0], parts[1]);
    const TensorId q = positions(parts[0], heads.query, Role::kQNorm, means);
    const TensorId k = positions(parts[1], heads.kv, Role::kKvNorm, means);
    const TensorId o = over_keys(heads, q, k, parts[2]);
    return model_.output_gate ? w_.gate(o, parts[3]) : o;
  }

  TensorId over_keys(const Heads& heads, TensorId q, TensorId k, TensorId v) {
    const TensorId cache = append({k, v});
    if (b_.batch->cut_keys > 0) {
      const auto [keys, values] = gathered(cache, w_.columns(k), w_.columns(v));
      return over_prompts(heads, q, keys, values);
    }
    if (whole_prompts()) return over_prompts(heads, q, k, v);
    return over_cache(heads, 1 / std::sqrt(static_cast<double>(heads.head_dim)), q, cache);
  }

  TensorId latent_queries(TensorId from, int local_heads, int head_dim) {
    const Mla& mla = model_.mla;
    const std::int64_t columns = std::int64_t{heads_} * head_dim;
    const bool direct = mla.q_rank == 0;
    const TensorId whole = by_heads() ? w_.gather_context(from) : from;
    const TensorId q = w_.linear(
        whole, {direct ? Role::kQ : Role::kQB, columns, direct ? model_.hidden : mla.q_rank, Cut::kColumns});
    const BatchPtr batch = seen({});
    return rotary(q, local_heads, mla.rope_dim, *batch, w_.builder().add_batch(batch), kInPlace);
  }

  TensorId latent(TensorId x) {
    const Mla& mla = model_.mla;
    const int local = heads_ / tp_;
    // Both maps of the layer's input, one after the other: engines multiply by one matrix of both.
    const bool has_rank = mla.q_rank > 0;
    const TensorId short_q = has_rank ? w_.linear(x, {Role::kQA, mla.q_rank, model_.hidden}) : x;
    const TensorId down = w_.linear(x, {Role::kKvA, mla.kv_rank + mla.rope_dim, model_.hidden});
    const TensorId from = has_rank ? w_.norm(short_q, Role::kQNorm) : x;
    const TensorId q = latent_queries(from, local, mla.nope_dim + mla.rope_dim);
    const auto parts = w_.split(down, {mla.kv_rank, mla.rope_dim}, Role::kKvA);
    const TensorId latent = w_.norm(parts[0], Role::kKvNorm);
    const TensorId rope = rotary(parts[1], 1, mla.rope_dim);
    if (model_.is_sparse()) return sparse({x, from, q, latent, rope}, local);
    const TensorId cache = append({latent, rope});
    if (b_.batch->cut_keys > 0) {
      const auto [latents, ropes] = gathered(cache, mla.kv_rank, mla.rope_dim);
      const TensorId o = blown_up(q, latents, ropes, local);
      return by_heads() ? exchange_heads(w_, o, kHeadsBack) : o;
    }
    if (b_.parts.given()) return in_parts(q, cache, local);
    const bool blows_up = whole_prompts() && !b_.parts.none;
    return blows_up ? blown_up(q, latent, rope, local) : absorbed(q, cache, local, {});
  }

  struct Latents {
    TensorId x, query;  // the layer's input, what queries are made from
    TensorId q, latent, rope;
  };

  // DeepSeek-V3.2: the indexer stands whole on each rank of a tensor group. Prompts that are no longer than
  // the number of keys that are chosen see them all.
  TensorId sparse(const Latents& of, int local) {
    const Indexer& indexer = model_.indexer;
    const Linear key{Role::kIndexerKey, indexer.head_dim, model_.hidden};
    const TensorId index = rotary(w_.norm(w_.linear(of.x, key), Role::kIndexerNorm), 1, model_.mla.rope_dim);
    const TensorId cache = append({of.latent, of.rope, index});
    if (whole_prompts() && b_.batch->longest() <= indexer.top)
      return blown_up(of.q, of.latent, of.rope, local);
    return absorbed(of.q, cache, local, {}, chosen_keys(of, cache));
  }

  TensorId chosen_keys(const Latents& of, TensorId cache) {
    const Indexer& indexer = model_.indexer;
    const std::int64_t m = w_.rows(of.x), longest = b_.batch->longest();
    const Linear map{Role::kIndexer, std::int64_t{indexer.heads} * indexer.head_dim, model_.mla.q_rank};
    const TensorId q = rotary(w_.linear(of.query, map), indexer.heads, model_.mla.rope_dim);
    const TensorId heads = w_.linear(of.x, {Role::kIndexerHeads, indexer.heads, model_.hidden});
    const TensorId scores = transient(m, longest, Role::kIndexer, DType::kFp32);
    Shape shape = attention_shape({indexer.heads, 1, indexer.head_dim, 0}, *b_.batch);
    shape.n = longest;
    w_.emit({.kind = OpKind::kIndexScores, .role = Role::kIndexer, .batch = b_.index, .shape = shape},
            {q, cache, heads}, {scores});
    const TensorId chosen = transient(m, indexer.top, Role::kIndexer, DType::kInt32);
    w_.emit({.kind = OpKind::kTopKeys,
             .role = Role::kIndexer,
             .batch = b_.index,
             .shape = {.m = m, .n = longest, .k = indexer.top, .groups = shape.groups, .kv = shape.kv}},
            {scores}, {chosen});
    return chosen;
  }

  // Of sequences that blow up and those that absorb, each writes its rows of the result.
  TensorId in_parts(TensorId q, TensorId cache, int local) {
    const LatentParts& parts = b_.parts;
    const auto [latent, rope] = read_back(cache, w_.builder().add_batch(parts.blown_up), parts.keys,
                                          {model_.mla.kv_rank, model_.mla.rope_dim});
    const TensorId o = blown_up(q, latent, rope, local);
    if (!parts.absorbed) return o;
    return absorbed(q, cache, local,
                    {.first = parts.blown_up->rows(), .rows = parts.absorbed->rows(), .o = o});
  }

  // Of `keys` tokens of a batch what the cache has: its columns, the first ones and the rest.
  std::pair<TensorId, TensorId> read_back(TensorId cache, std::int32_t batch, std::int64_t keys,
                                          std::pair<std::int64_t, std::int64_t> columns) {
    const TensorId first = transient(keys, columns.first, Role::kCache);
    const TensorId rest = transient(keys, columns.second, Role::kCache);
    w_.emit({.kind = OpKind::kCacheAppend,
             .role = Role::kCache,
             .batch = batch,
             .shape = {.m = keys, .n = columns.first + columns.second, .k = 1}},
            {cache}, {first, rest});
    return {first, rest};
  }

  Linear up_map() const {
    return {Role::kKvB, std::int64_t{heads_} * (model_.mla.nope_dim + model_.mla.v_dim), model_.mla.kv_rank,
            Cut::kColumns};
  }

  // Of sequences whose keys are blown up; where others share the batch, these have its first rows.
  TensorId blown_up(TensorId q, TensorId latent, TensorId rope, int local) {
    const Mla& mla = model_.mla;
    const Heads heads{local, local, mla.nope_dim + mla.rope_dim, mla.v_dim};
    const TensorId kv = w_.linear(latent, up_map());
    const std::int64_t m = w_.rows(kv);
    const TensorId k = transient(m, std::int64_t{local} * heads.head_dim, Role::kKvB);
    const TensorId v = transient(m, std::int64_t{local} * mla.v_dim, Role::kKvB);
    w_.emit({.kind = OpKind::kMlaKeys,
             .role = Role::kKvB,
             .shape = {.m = m,
                       .n = w_.columns(kv),
                       .k = mla.rope_dim,
                       .heads = local,
                       .kv_heads = kValuesStay,
                       .head_dim = heads.head_dim,
                       .v_dim = mla.v_dim}},
            {kv, rope}, {k, v});
    return over_prompts(heads, q, k, v);
  }

  // Some rows of a batch, and the result that they have a place in; without a result: all rows.
  struct SomeRows {
    std::int64_t first = 0, rows = 0;
    TensorId o = kNoTensor;
  };

  // The products by heads run in BF16, as serving systems do, whatever the format of the map.
  TensorId absorbed(TensorId q, TensorId cache, int local, const SomeRows& some,
                    TensorId chosen = kNoTensor) {
    const Mla& mla = model_.mla;
    const bool whole = some.o == kNoTensor;
    const int head_dim = mla.nope_dim + mla.rope_dim;
    const std::int64_t m = whole ? w_.rows(q) : some.rows;
    const Linear up = up_map();
    const TensorId map = w_.weight(up, up.out / tp_, up.in);
    const Shape shape{.m = m,
                      .n = mla.kv_rank,
                      .k = mla.rope_dim,
                      .groups = whole ? 0 : 1,
                      .heads = local,
                      .head_dim = head_dim,
                      .v_dim = mla.v_dim,
                      .kv = some.first};
    const TensorId wide = transient(m, std::int64_t{local} * (mla.kv_rank + mla.rope_dim), Role::kKvB);
    w_.emit({.kind = OpKind::kAbsorbQueries, .role = Role::kKvB, .shape = shape}, {q, map}, {wide});
    const TensorId mean = over_cache({local, 1, mla.kv_rank + mla.rope_dim, mla.kv_rank},
                                     1 / std::sqrt(static_cast<double>(head_dim)), wide, cache, chosen);
    const TensorId o = whole ? transient(m, std::int64_t{local} * mla.v_dim, Role::kAttention) : some.o;
    w_.emit({.kind = OpKind::kAbsorbedValues, .role = Role::kKvB, .shape = shape}, {mean, map}, {o});
    return o;
  }

  LayerWriter& w_;
  const CachedBatch& b_;
  const Model& model_;
  int tp_;
  int heads_;  // of the ranks of a tensor group together
};

}  // namespace

TensorId write_parallel_block_of_batch(LayerWriter& writer, const CachedBatch& batch, TensorId x) {
  return write_parallel_block(writer, x, [&batch](LayerWriter& of_block, TensorId whole) {
    return BatchAttention(of_block, batch).write(whole);
  });
}

TensorId write_batch_attention(LayerWriter& writer, const CachedBatch& batch, TensorId x) {
  const Model& model = writer.model();
  const TensorId normed = writer.enter_tensor_parallel(writer.norm(x, Role::kAttentionNorm));
  const bool attends = !model.is_delta_layer(writer.builder().layer);
  const TensorId o =
      attends ? BatchAttention(writer, batch).write(normed) : write_delta_network(writer, batch, normed);
  const int columns = attends ? model.value_dim() : model.delta.value_columns();
  const TensorId projected = writer.linear(o, {Role::kO, model.hidden, columns, Cut::kRows});
  return writer.add(x, writer.leave_tensor_parallel(projected));
}

}  // namespace moebius
