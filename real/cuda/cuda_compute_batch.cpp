// Compute ops of serving on a device: the tokens of a batch, its cache, what it generates.
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/batch_tokens.h"
#include "real/cuda/device_op.h"
#include "real/cuda/expert_copies.h"
#include "real/cuda/kernels_batch.h"

namespace moebius::cuda {
namespace {

const Batch& batch_of(const DeviceOp& c) {
  return *c.submission().fragment->batches[c.op().batch];
}

// The cache, to be written row by row.
Operand cache_of(DeviceOp& c) {
  if (is_scaled(storage_of(c.output_tensor(0).dtype)))
    throw run_error(fmt::format("cuda does not keep a cache in {} yet: set /plan/precision/kv to bf16",
                                to_string(c.output_tensor(0).dtype)));
  return c.edit(0);
}

void append(DeviceOp& c) {
  const Batch& batch = batch_of(c);
  const std::int32_t* slots = on_device(c, c.shape().heads == 1 ? batch.states() : batch.slots());
  const Operand cache = cache_of(c);
  std::int64_t first = 0;
  for (int i = 0; i < c.op().num_inputs; ++i) {
    const Operand part = c.in(i);
    append_rows(c.stream(), part, slots, first, cache);
    first += part.columns;
  }
  CHECK(first == cache.columns, fmt::format("{} of {} columns", first, cache.columns));
}

void read_back(DeviceOp& c) {
  const Batch& batch = batch_of(c);
  const std::vector<std::int32_t> slots = c.shape().heads == 1 ? batch.states() : cached_rows(batch);
  const std::int32_t* rows = on_device(c, slots);
  const Operand cache = c.in(0);
  std::int64_t first = 0;
  for (int i = 0; i < c.op().num_outputs; ++i) {
    const Operand part = c.out(i, static_cast<std::int64_t>(slots.size()), c.output_tensor(i).columns);
    read_rows(c.stream(), cache, rows, first, part);
    first += part.columns;
  }
  CHECK(first == cache.columns, fmt::format("{} of {} columns", first, cache.columns));
}

struct BlockTable {
  std::vector<std::int32_t> first_page, pages;  // of each row of the batch; of all sequences
};

BlockTable block_table(const Batch& batch) {
  BlockTable table;
  for (const BatchSequence& sequence : batch.sequences) {
    const auto first = static_cast<std::int32_t>(table.pages.size());
    table.first_page.insert(table.first_page.end(), sequence.count, first);
    table.pages.insert(table.pages.end(), sequence.pages.begin(), sequence.pages.end());
  }
  return table;
}

void attend_to_cache(DeviceOp& c) {
  const Shape& s = c.shape();
  const Batch& batch = batch_of(c);
  const BlockTable table = block_table(batch);
  const Operand q = c.in(0), cache = c.in(1);
  const PagedAttention a{.heads = s.heads,
                         .kv_heads = s.kv_heads,
                         .head_dim = s.head_dim,
                         .v_dim = s.v_dim,
                         .window = s.window,
                         .page_tokens = batch.page_tokens,
                         .longest = batch.longest(),
                         .scale = c.op().scale * static_cast<float>(c.options().constants.score_scale),
                         .q = q,
                         .cache = cache,
                         .positions = on_device(c, batch.positions()),
                         .first_page = on_device(c, table.first_page),
                         .pages = on_device(c, table.pages),
                         .columns = s.n,
                         .top = s.k,
                         .chosen = s.k > 0 ? c.in(2) : Operand{}};
  CHECK(a.head_dim <= kLargestHead && a.v_dim <= kLargestHead,
        fmt::format("heads of {} and {} columns", a.head_dim, a.v_dim));
  const Operand partial = c.scratch(q.rows * a.heads * a.parts(), a.partial_columns());
  paged_attention(c.stream(), a, partial, c.out(0, q.rows, a.heads * a.v_dim));
}

void score_keys(DeviceOp& c) {
  const Shape& s = c.shape();
  const Batch& batch = batch_of(c);
  const BlockTable table = block_table(batch);
  const Operand q = c.in(0);
  const PagedAttention of{.heads = s.heads,
                          .head_dim = s.head_dim,
                          .page_tokens = batch.page_tokens,
                          .q = q,
                          .cache = c.in(1),
                          .positions = on_device(c, batch.positions()),
                          .first_page = on_device(c, table.first_page),
                          .pages = on_device(c, table.pages)};
  index_scores(c.stream(), of, c.in(2), c.out(0, q.rows, s.n));
}

void choose_keys(DeviceOp& c) {
  const Operand scores = c.in(0);
  top_keys(c.stream(), scores, on_device(c, batch_of(c).positions()), c.out(0, scores.rows, c.shape().k));
}

Absorb absorb_shape(const Shape& s) {
  return {.heads = s.heads, .nope = s.head_dim - s.k, .rope = s.k, .v_dim = s.v_dim, .latent = s.n};
}

void absorb(DeviceOp& c) {
  const Absorb s = absorb_shape(c.shape());
  const Operand all = c.in(0), map = c.in(1);
  const Operand q = c.shape().groups == 0 ? all : all.some_rows(c.shape().kv, c.shape().m);
  absorb_queries(c.stream(), s, q, map, c.out(0, q.rows, s.heads * (s.latent + s.rope)));
}

void values_of_absorbed(DeviceOp& c) {
  const Absorb s = absorb_shape(c.shape());
  const Operand x = c.in(0), map = c.in(1);
  if (c.shape().groups == 0)
    return absorbed_values(c.stream(), s, x, map, c.out(0, x.rows, s.heads * s.v_dim));
  absorbed_values(c.stream(), s, x, map, c.edit(0).some_rows(c.shape().kv, x.rows));
}

void last_rows(DeviceOp& c) {
  const std::vector<std::int32_t> first = batch_of(c).first_rows();
  std::vector<std::int32_t> last;
  for (std::size_t i = 1; i < first.size(); ++i) last.push_back(first[i] - 1);
  const Operand x = c.in(0);
  gather_rows(c.stream(), x, on_device(c, last), c.out(0, static_cast<std::int64_t>(last.size()), x.columns));
}

void sample(DeviceOp& c) {
  const Operand logits = c.in(0), best = c.out(0, logits.rows, 2);
  const int gathered = c.shape().groups;
  if (gathered == 0)
    return greedy_sample(c.stream(), logits, c.index_in(GroupRole::kTensor) * logits.columns, best);
  const std::int64_t rows = logits.rows / gathered;
  for (int shard = 0; shard < gathered; ++shard)
    greedy_sample(c.stream(), logits.some_rows(shard * rows, rows), shard * logits.columns,
                  best.some_rows(shard * rows, rows));
}

void keep_next_token(DeviceOp& c) {
  const std::vector<std::int64_t> places = next_places(batch_of(c), c.output_tensor(0).columns);
  const std::int32_t* place = on_device(c, {places.begin(), places.end()});
  const Operand best = c.in(0);
  next_token(c.stream(), best, place, static_cast<std::int64_t>(places.size()), c.edit(0));
}

void place_experts(DeviceOp& c) {
  const Operand come = c.in(0), held = c.edit_stored(c.output_id(0));
  const std::int64_t rows = c.shape().m / c.shape().groups;
  const ExpertTransfer::Layer& layer = c.submission().fragment->transfer->of(c.op().layer);
  for (const ExpertTransfer::Placing& placing : layer.placings_at(c.index_in(GroupRole::kExpert)))
    copy_expert(c, {come, rows, placing.arrival}, c.rank().device, {held, rows, placing.slot});
}

}  // namespace

const std::int32_t* on_device(DeviceOp& c, const std::vector<std::int32_t>& indices) {
  const Operand place = c.scratch(static_cast<std::int64_t>(indices.size()), 1);
  copy_to_device(c.stream(), place.data, indices.data(), indices.size() * sizeof(std::int32_t));
  return static_cast<const std::int32_t*>(place.data);
}

void input_of_batch(DeviceOp& c) {
  const Operand generated = c.in(0);
  std::vector<std::int32_t> prompt, place;
  const PromptSource source{c.options().seed, c.shape().n, c.options().prompts};
  for (const RowToken& row : row_tokens(batch_of(c), source, generated.columns)) {
    prompt.push_back(row.prompt);
    place.push_back(static_cast<std::int32_t>(row.place));
  }
  batch_tokens(c.stream(), {on_device(c, prompt), on_device(c, place), generated},
               c.out(0, static_cast<std::int64_t>(prompt.size()), 1));
}

const std::int32_t* positions_of_batch(DeviceOp& c) {
  return c.op().batch < 0 ? nullptr : on_device(c, batch_of(c).positions());
}

// Sequences one after the other, each by itself. Tokens are the same however a prompt is cut: on tensor cores
// where all tiles of keys begin at the first one, so not under a window.
void attend_in_batch(DeviceOp& c) {
  const Shape& s = c.shape();
  const Operand q = c.in(0), k = c.in(1), v = c.in(2);
  const Operand o = c.out(0, q.rows, std::int64_t{s.heads} * s.v_dim), lse = c.out(1, q.rows, s.heads);
  std::int64_t row = 0, key = 0;
  for (const BatchSequence& sequence : batch_of(c).sequences) {
    const std::int64_t count = sequence.count, keys = sequence.length();
    const Attention a{.queries = count,
                      .keys = keys,
                      .heads = s.heads,
                      .kv_heads = s.kv_heads,
                      .head_dim = s.head_dim,
                      .v_dim = s.v_dim,
                      .window = s.window,
                      .chunk = keys,
                      .score_scale = c.options().constants.score_scale,
                      .q = q.some_rows(row, count),
                      .k = k.some_rows(key, keys),
                      .v = v.some_rows(key, keys)};
    const Operand here = o.some_rows(row, count), sums = lse.some_rows(row, count);
    if (s.window > 0)
      attention(c.stream(), a, here, sums);
    else
      attend_by_shape(c, a, here, sums);
    row += count;
    key += keys;
  }
}

void compute_batch(DeviceOp& c) {
  const OpKind kind = c.op().kind;
  if (kind == OpKind::kCacheAppend) return c.shape().k == 1 ? read_back(c) : append(c);
  if (kind == OpKind::kPagedAttention) return attend_to_cache(c);
  if (kind == OpKind::kIndexScores) return score_keys(c);
  if (kind == OpKind::kTopKeys) return choose_keys(c);
  if (kind == OpKind::kAbsorbQueries) return absorb(c);
  if (kind == OpKind::kAbsorbedValues) return values_of_absorbed(c);
  if (kind == OpKind::kConvolution) return convolve_batch(c);
  if (kind == OpKind::kDeltaRule) return delta_rule_of_batch(c);
  if (kind == OpKind::kLastRows) return last_rows(c);
  if (kind == OpKind::kGreedySample) return sample(c);
  if (kind == OpKind::kPlaceExperts) return place_experts(c);
  CHECK(kind == OpKind::kNextToken, fmt::format("{} is not of serving", to_string(kind)));
  keep_next_token(c);
}

}  // namespace moebius::cuda
