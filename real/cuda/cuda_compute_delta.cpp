// Gated delta networks of serving on a device: each sequence of a batch with its own row of what is kept.
#include <vector>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/device_op.h"
#include "real/cuda/kernels_delta.h"

namespace moebius::cuda {
namespace {

SequenceRows sequence_rows(DeviceOp& c) {
  const Batch& batch = *c.submission().fragment->batches[c.op().batch];
  std::vector<std::int32_t> owner, past;
  for (const BatchSequence& sequence : batch.sequences) {
    owner.insert(owner.end(), sequence.count, static_cast<std::int32_t>(past.size()));
    past.push_back(sequence.past);
  }
  return {.sequences = static_cast<std::int64_t>(past.size()),
          .first = on_device(c, batch.first_rows()),
          .owner = on_device(c, owner),
          .states = on_device(c, batch.states()),
          .past = on_device(c, past)};
}

}  // namespace

void convolve_batch(DeviceOp& c) {
  const Operand x = c.in(0), weight = c.in(1);
  const Convolution convolution{
      .rows = sequence_rows(c), .width = c.shape().k, .x = x, .weight = weight, .kept = c.edit(1)};
  convolve(c.stream(), convolution, c.out(0, x));
}

void delta_rule_of_batch(DeviceOp& c) {
  const Shape& s = c.shape();
  CHECK(s.head_dim <= kLargestHead, fmt::format("heads of {} columns", s.head_dim));
  const Operand qkv = c.in(0), gates = c.in(1), decay = c.in(2);
  const DeltaRule rule{.rows = sequence_rows(c),
                       .heads = s.heads,
                       .key_heads = s.kv_heads,
                       .key_dim = s.head_dim,
                       .value_dim = s.v_dim,
                       .qkv = qkv,
                       .gates = gates,
                       .decay = decay,
                       .state = c.edit(1)};
  delta_rule(c.stream(), rule, c.out(0, qkv.rows, std::int64_t{s.heads} * s.v_dim));
}

}  // namespace moebius::cuda
