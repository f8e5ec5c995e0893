// Compute ops of attention on a device: positions, keys from latents, the attention itself.
#include <algorithm>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/device_op.h"

namespace moebius::cuda {
namespace {

// A context-parallel rank holds the chunk of each sequence that its index says.
void rotary(DeviceOp& c, bool back) {
  const Operand x = c.in(0);
  const std::int64_t rows = x.rows / std::max(c.shape().groups, 1);
  const Rotary& rotary = c.options().constants.rotary;
  rotate(c.stream(),
         {.heads = std::max(c.shape().heads, 1),
          .rotated = c.shape().head_dim,
          .sequence_rows = rows,
          .first_position = c.index_in(GroupRole::kContext) * rows,
          .back = back,
          .base = rotary.base,
          .factor = rotary.factor,
          .low = rotary.low,
          .high = rotary.high,
          .magnitude = rotary.magnitude,
          .positions = positions_of_batch(c)},
         x, c.out(0, x));
}

// Keys gathered over a context group stand member by member; those up to this member's own chunk are seen.
// Keys that are as many as the queries were not gathered.
Attention attention_of(const DeviceOp& c, const Operand& q, const Operand& k, const Operand& v) {
  const Shape& s = c.shape();
  const std::int64_t sequences = std::max(s.groups, 1);
  const bool gathered = k.rows > q.rows;
  const std::int64_t chunk = k.rows / sequences / (gathered ? c.size_of(GroupRole::kContext) : 1);
  return {.sequences = sequences,
          .queries = q.rows / sequences,
          .keys = gathered ? (c.index_in(GroupRole::kContext) + 1) * chunk : chunk,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .v_dim = s.v_dim,
          .window = s.window,
          .chunk = chunk,
          .score_scale = c.options().constants.score_scale,
          .q = q,
          .k = k,
          .v = v};
}

void attend(DeviceOp& c) {
  if (c.op().batch >= 0) return attend_in_batch(c);
  const Attention a = attention_of(c, c.in(0), c.in(1), c.in(2));
  const Operand o = c.out(0, a.q.rows, a.heads * a.v_dim), lse = c.out(1, a.q.rows, a.heads);
  attend_by_shape(c, a, o, lse);
  if (c.op().num_outputs > 2)
    attention_probabilities(c.stream(), a, lse, c.out(2, a.q.rows, a.heads * a.keys));
}

// Computes the probabilities anew from lse, kept or not.
void attend_back_by_shape(DeviceOp& c, const Attention& a, AttentionGrad grad) {
  if (c.options().tensor_cores && flash_grad_takes(a, grad)) {
    grad.workspace = c.scratch(flash_grad_workspace(a), 1);
    flash_attention_grad(c.stream(), a, grad);
  } else {
    grad.dot = c.scratch(a.q.rows, a.heads);
    attention_grad(c.stream(), a, grad);
  }
}

// Sequences one after the other, each by itself, as attend_in_batch() has them.
void attend_back_in_batch(DeviceOp& c) {
  const Operand d_o = c.in(0), q = c.in(1), k = c.in(2), v = c.in(3), o = c.in(4), lse = c.in(5);
  const Operand dq = c.out(0, q), dk = c.out(1, k), dv = c.out(2, v);
  std::int64_t row = 0;
  for (const BatchSequence& sequence : c.submission().fragment->batches[c.op().batch]->sequences) {
    const std::int64_t count = sequence.count;
    const auto own = [&](const Operand& x) { return x.some_rows(row, count); };
    Attention a = attention_of(c, own(q), own(k), own(v));
    a.sequences = 1;
    a.queries = a.keys = a.chunk = count;
    attend_back_by_shape(
        c, a, {.d_o = own(d_o), .o = own(o), .lse = own(lse), .dq = own(dq), .dk = own(dk), .dv = own(dv)});
    row += count;
  }
}

void attend_back(DeviceOp& c) {
  if (c.op().batch >= 0) return attend_back_in_batch(c);
  const Attention a = attention_of(c, c.in(1), c.in(2), c.in(3));
  attend_back_by_shape(c, a,
                       {.d_o = c.in(0),
                        .o = c.in(4),
                        .lse = c.in(5),
                        .dq = c.out(0, a.q),
                        .dk = c.out(1, a.k),
                        .dv = c.out(2, a.v)});
}

LatentColumns latent_columns(const Shape& s) {
  return {.heads = s.heads, .nope = s.head_dim - s.k, .rope = s.k, .v = s.v_dim};
}

void keys_of_latents(DeviceOp& c) {
  const LatentColumns d = latent_columns(c.shape());
  const Operand kv = c.in(0), rope = c.in(1);
  mla_keys(c.stream(), d, kv, rope, c.out(0, kv.rows, d.heads * (d.nope + d.rope)),
           c.out(1, kv.rows, d.heads * d.v));
}

void keys_of_latents_back(DeviceOp& c) {
  const LatentColumns d = latent_columns(c.shape());
  const Operand dk = c.in(0), dv = c.in(1);
  mla_keys_grad(c.stream(), d, dk, dv, c.out(0, dk.rows, d.heads * (d.nope + d.v)),
                c.out(1, dk.rows, d.rope));
}

}  // namespace

void attend_by_shape(DeviceOp& c, const Attention& a, const Operand& o, const Operand& lse) {
  if (c.options().tensor_cores && flash_takes(a)) return flash_attention(c.stream(), a, o, lse);
  attention(c.stream(), a, o, lse);
}

void compute_attention(DeviceOp& c) {
  const OpKind kind = c.op().kind;
  if (kind == OpKind::kRotary) return rotary(c, false);
  if (kind == OpKind::kRotaryGrad) return rotary(c, true);
  if (kind == OpKind::kAttention) return attend(c);
  if (kind == OpKind::kAttentionGrad) return attend_back(c);
  if (kind == OpKind::kMlaKeys) return keys_of_latents(c);
  CHECK(kind == OpKind::kMlaKeysGrad, fmt::format("{} is not of attention", to_string(kind)));
  keys_of_latents_back(c);
}

}  // namespace moebius::cuda
