// Attention of one layer, with its norms and projections: grouped-query (multi-head as the special case) and
// multi-head latent attention (DeepSeek-V2, section 2.1).
#include <fmt/format.h>

#include "hw/error.h"
#include "models/layer_math.h"
#include "workloads/schedule/context_part.h"
#include "workloads/training/layers/layer_writer.h"

namespace moebius {
namespace {

// Chunked attention: every chunk is a sequence of its own. Where chunks end with the rows of a rank, as
// scenarios must have it, no query sees a key of another rank: none are gathered.
bool keeps_keys(const LayerWriter& writer) {
  const std::int64_t chunk = writer.model().chunk(writer.builder().layer);
  return chunk > 0 && chunk < writer.workload().sequence_length;
}

TensorId gather_keys(LayerWriter& writer, TensorId x) {
  return keeps_keys(writer) ? x : writer.gather_context(x);
}

// Keys at the end of which `queries` of them have as many causal pairs as a rank of `cp` has with the usual
// zigzag cut of s tokens: without a window (s + s/cp)/2.
std::int64_t keys_of_share(std::int64_t s, std::int64_t queries, std::int64_t window, int cp) {
  if (cp == 1) return s;
  std::int64_t low = queries, high = (s + queries) / 2;
  if (window == 0) return high;
  const auto pairs = [&](std::int64_t rows, std::int64_t keys) {
    return attention_pairs(
        {.m = rows, .groups = 1, .heads = 1, .kv = keys, .window = static_cast<std::int32_t>(window)});
  };
  const double share = pairs(s, s) / cp;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    pairs(queries, middle) < share ? low = middle + 1 : high = middle;
  }
  return low;
}

// Sequences that chunks do not divide are cut as packed ones are (StageWriter).
CoreReach reach_of(LayerWriter& writer, std::int64_t queries) {
  const std::int64_t s = writer.workload().sequence_length;
  const int layer = writer.builder().layer;
  const std::int64_t chunk = writer.model().chunk(layer);
  const std::int32_t batch = chunk > 0 ? writer.pass().local_batch : writer.pass().batch;
  if (batch >= 0) {
    const auto sequences = std::ssize(writer.builder().fragment().batches[batch]->sequences);
    return {static_cast<std::int32_t>(sequences), queries / sequences,
            static_cast<std::int32_t>(writer.model().window(layer)), batch};
  }
  if (keeps_keys(writer)) {
    CHECK(queries % chunk == 0, fmt::format("chunks of {} tokens in {} rows", chunk, queries));
    return {static_cast<std::int32_t>(queries / chunk), chunk, 0};
  }
  const std::int64_t window = writer.model().window(layer), sequences = writer.workload().micro_batch;
  return {static_cast<std::int32_t>(sequences),
          keys_of_share(s, queries / sequences, window, writer.plan().cp), static_cast<std::int32_t>(window)};
}

// What kernels of their own leave in memory between them: the probabilities and, with dropout, the mask and
// what it leaves of them (Korthikanti et al. 2022, section 4.1: 5 b a s^2 bytes). Returns kAttention's k.
struct Scores {
  std::int64_t rows = 0, columns = 0;
};
std::int64_t write_scores(LayerWriter& writer, const Scores& scores, std::vector<TensorId>& outputs) {
  if (writer.plan().attention == AttentionKernels::kFlash) return 0;
  const auto add = [&](DType dtype) {
    outputs.push_back(writer.builder().transient(scores.rows, scores.columns, dtype, Role::kAttention));
  };
  add(DType::kBf16);
  if (writer.workload().dropout == 0) return 1;
  add(DType::kBf16);
  add(DType::kInt8);
  return 2;
}

// Keys of which a row keeps scores: of packed sequences each row those of its own.
std::int64_t scored_keys(const LayerWriter& writer, const CoreReach& reach, std::int64_t rows) {
  if (reach.batch < 0) return reach.keys;
  std::int64_t scores = 0;
  for (const BatchSequence& sequence : writer.builder().fragment().batches[reach.batch]->sequences)
    scores += std::int64_t{sequence.count} * sequence.count;
  return (scores + rows - 1) / rows;
}

TensorId write_core(LayerWriter& writer, const CoreHeads& heads, TensorId q, TensorId k, TensorId v) {
  const bool cut = writer.plan().cp > 1;
  if (cut && writer.plan().context == ContextKind::kRing) return write_ring_core(writer, heads, {q, k, v});
  if (cut && writer.plan().context == ContextKind::kUlysses)
    return write_ulysses_core(writer, heads, {q, k, v});
  return emit_core(writer, heads, reach_of(writer, writer.rows(q)), {q, k, v}, kGatheredKeys).first;
}

// Positions of queries or keys, and before that their norm where the model has one.
TensorId write_positions(LayerWriter& writer, TensorId x, int heads, Role norm, TensorId means) {
  const TensorId normed = writer.query_key_norm(x, norm, heads, means);
  const Model& model = writer.model();
  if (!model.rotates(writer.builder().layer)) return normed;
  return writer.rotary(normed, heads, model.rotary_dim > 0 ? model.rotary_dim : model.head_dim);
}

TensorId write_latent_queries(LayerWriter& writer, TensorId x, const CoreHeads& heads) {
  const Model& model = writer.model();
  const std::int64_t columns = std::int64_t{model.heads} * heads.head_dim;
  TensorId q;
  if (model.mla.q_rank > 0) {
    const TensorId down = writer.linear(x, {Role::kQA, model.mla.q_rank, model.hidden});
    const TensorId latent = writer.enter_tensor_parallel(writer.norm(down, Role::kQNorm));
    q = writer.linear(latent, {Role::kQB, columns, model.mla.q_rank, Cut::kColumns});
  } else {
    q = writer.linear(writer.enter_tensor_parallel(x), {Role::kQ, columns, model.hidden, Cut::kColumns});
  }
  return writer.rotary(q, heads.query, model.mla.rope_dim);
}

TensorId write_latent(LayerWriter& writer, TensorId x) {
  const Model& model = writer.model();
  const Mla& mla = model.mla;
  const int local = model.heads / writer.plan().tp;
  const CoreHeads heads{local, local, mla.nope_dim + mla.rope_dim, mla.v_dim};
  const TensorId q = write_latent_queries(writer, x, heads);
  const TensorId down = writer.linear(x, {Role::kKvA, mla.kv_rank + mla.rope_dim, model.hidden});
  const auto parts = writer.split(down, {mla.kv_rank, mla.rope_dim}, Role::kKvA);
  // What is gathered over context ranks is the latent, before it is blown up to heads.
  const TensorId latent =
      gather_keys(writer, writer.enter_tensor_parallel(writer.norm(parts[0], Role::kKvNorm)));
  // Positions count whole sequences: what sequence parallelism cut is put together before it is rotated.
  const TensorId rope =
      gather_keys(writer, writer.rotary(writer.enter_tensor_parallel(parts[1]), 1, mla.rope_dim));
  const TensorId kv = writer.linear(
      latent,
      {Role::kKvB, std::int64_t{model.heads} * (mla.nope_dim + mla.v_dim), mla.kv_rank, Cut::kColumns});
  FragmentBuilder& builder = writer.builder();
  const std::int64_t m = writer.rows(kv);
  const TensorId k = builder.transient(m, std::int64_t{local} * heads.head_dim, DType::kBf16, Role::kKvB);
  const TensorId v = builder.transient(m, std::int64_t{local} * mla.v_dim, DType::kBf16, Role::kKvB);
  writer.emit({.kind = OpKind::kMlaKeys,
               .role = Role::kKvB,
               .shape = {.m = m,
                         .n = writer.columns(kv),
                         .k = mla.rope_dim,
                         .heads = local,
                         .head_dim = heads.head_dim,
                         .v_dim = mla.v_dim}},
              {kv, rope}, {k, v});
  return write_core(writer, heads, q, k, v);
}

}  // namespace

std::pair<TensorId, TensorId> emit_core(LayerWriter& writer, const CoreHeads& heads, const CoreReach& reach,
                                        const CoreOperands& operands, std::uint32_t part) {
  FragmentBuilder& builder = writer.builder();
  const std::int64_t m = writer.rows(operands.q);
  const TensorId o =
      builder.transient(m, std::int64_t{heads.query} * heads.v_dim, DType::kBf16, Role::kAttention);
  const TensorId lse = builder.transient(m, heads.query, DType::kFp32, Role::kAttention);
  std::vector<TensorId> outputs{o, lse};
  const std::int64_t kernels =
      write_scores(writer, {m, heads.query * scored_keys(writer, reach, m)}, outputs);
  writer.emit({.kind = OpKind::kAttention,
               .role = Role::kAttention,
               .batch = reach.batch,
               .match = part,
               .shape = {.m = m,
                         .k = kernels,
                         .groups = reach.sequences,
                         .heads = heads.query,
                         .kv_heads = heads.kv,
                         .head_dim = heads.head_dim,
                         .v_dim = heads.v_dim,
                         .kv = reach.keys,
                         .window = reach.window}},
              {operands.q, operands.k, operands.v}, outputs);
  return {o, lse};
}

// Queries, keys and values from one fused projection.
TensorId write_grouped_query(LayerWriter& writer, TensorId whole) {
  const Model& model = writer.model();
  const int tp = writer.plan().tp;
  const CoreHeads heads{model.heads / tp, model.kv_heads / tp, model.head_dim, model.head_dim};
  const std::int64_t q_columns = std::int64_t{heads.query} * heads.head_dim;
  const std::int64_t kv_columns = std::int64_t{heads.kv} * heads.head_dim;
  const TensorId qkv = writer.linear(whole, {.role = Role::kQkv,
                                             .out = (q_columns + 2 * kv_columns) * tp,
                                             .in = model.hidden,
                                             .cut = Cut::kColumns,
                                             .bias = model.trains_qkv_bias()});
  const auto parts = writer.split(qkv, {q_columns, kv_columns, kv_columns}, Role::kQkv);
  const TensorId means = writer.query_key_means(parts[0], parts[1]);
  const TensorId q = write_positions(writer, parts[0], heads.query, Role::kQNorm, means);
  const TensorId k = gather_keys(writer, write_positions(writer, parts[1], heads.kv, Role::kKvNorm, means));
  const TensorId v = gather_keys(writer, parts[2]);
  return write_core(writer, heads, q, k, v);
}

TensorId write_attention(LayerWriter& writer, TensorId x) {
  const Model& model = writer.model();
  const TensorId normed = writer.norm(x, Role::kAttentionNorm);
  const TensorId o = model.attention == AttentionKind::kMla
                         ? write_latent(writer, normed)
                         : write_grouped_query(writer, writer.enter_tensor_parallel(normed));
  const TensorId projected = writer.linear(o, {Role::kO, model.hidden, model.value_dim(), Cut::kRows});
  const TensorId result = writer.leave_tensor_parallel(projected);
  writer.end_recompute();  // the residual stream between blocks is what everything else is computed from
  return writer.add_block(x, result);
}

}  // namespace moebius
