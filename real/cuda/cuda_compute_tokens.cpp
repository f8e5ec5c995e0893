// Compute ops on a device where tokens enter and leave a model, and the optimizer.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/error.h"
#include "real/cuda/device_op.h"
#include "real/cuda/near_copy.h"
#include "real/host/adam_operands.h"
#include "real/token_stream.h"

namespace moebius::cuda {
namespace {

// The sequences of a step are dealt out as the host executor deals them (real/host/host_compute_tokens.cpp):
// microbatch by microbatch to the replicas; context-parallel ranks read chunks of the same ones. The host
// makes them.
void input(DeviceOp& c) {
  if (c.op().batch >= 0) return input_of_batch(c);
  const Shape& s = c.shape();
  const int context = c.size_of(GroupRole::kContext);
  const GroupRole dealt = c.group(GroupRole::kBatch).ranks.empty() ? GroupRole::kData : GroupRole::kBatch;
  const std::int64_t replicas = c.size_of(dealt) / context;
  const std::int64_t replica = c.index_in(dealt) / context;
  const std::int64_t sequences = std::max(s.groups, 1), rows = s.m / sequences;
  const std::int64_t first = c.index_in(GroupRole::kContext) * rows;
  std::vector<std::vector<float>> streams(c.op().num_outputs, std::vector<float>(s.m));
  for (std::int64_t i = 0; i < sequences; ++i) {
    const std::int64_t sequence = c.submission().part_of_batch(c.op(), replicas, replica) * sequences + i;
    const auto tokens = token_sequence({c.options().seed, c.submission().step, sequence},
                                       first + rows + c.op().num_outputs, s.n);
    for (std::size_t shift = 0; shift < streams.size(); ++shift)
      std::copy_n(tokens.begin() + first + shift, rows, streams[shift].begin() + i * rows);
  }
  for (int i = 0; i < c.op().num_outputs; ++i) {
    const Operand values = c.scratch(s.m, 1);
    c.upload(streams[i], values);
    convert(c.stream(), values, c.out(i, s.m, 1));
  }
}

// Vocabularies are cut into equal shards over the tensor group.
Vocabulary vocabulary_shard(const DeviceOp& c) {
  return {c.index_in(GroupRole::kTensor) * c.shape().n, c.shape().n};
}

void look_up(DeviceOp& c) {
  const Operand tokens = c.in(0), table = c.in(1);
  embed(c.stream(), vocabulary_shard(c), tokens, table, c.out(0, tokens.rows, table.columns));
}

void look_up_back(DeviceOp& c) {
  const Operand tokens = c.in(0), dx = c.in(1);
  embed_grad(c.stream(), vocabulary_shard(c), tokens, dx, c.edit(0));
}

void loss_stats(DeviceOp& c) {
  const Operand logits = c.in(0), labels = c.in(1);
  cross_entropy_stats(c.stream(), vocabulary_shard(c), logits, labels, c.out(0, labels.rows, 3));
}

void loss(DeviceOp& c) {
  const Operand logits = c.in(0), labels = c.in(1), stats = c.in(2);
  const Operand row_loss = c.scratch(2 * labels.rows + 2, 1);  // FP64 takes two each, the sum another two
  auto* doubles = static_cast<double*>(row_loss.data);
  cross_entropy(c.stream(), vocabulary_shard(c),
                {.logits = logits,
                 .labels = labels,
                 .stats = stats,
                 .scale = c.op().scale,
                 .dlogits = c.out(1, logits),
                 .sum = c.edit(0),
                 .loss = doubles + labels.rows,
                 .row_loss = doubles});
  c.issued().loss = c.rank().losses.take();
  copy_to_host(c.stream(), c.issued().loss, doubles + labels.rows, sizeof(double));
}

// The member's own elements of what it holds whole, or holds only its shard of.
Operand own_part(DeviceOp& c, std::int32_t tensor, const Operand& held, const FlatShard& own) {
  Operand part = held;
  if (c.rank().store.describe(tensor).shards == 0) part.data = byte_at(held, own.first);
  part.rows = own.count();
  part.columns = 1;
  return part;
}

void update_parameter(DeviceOp& c, const AdamIds& id, const FlatShard& own, const Operand& squares) {
  const Operand gradient = c.edit_tensor(id.gradient), weight = c.edit_tensor(id.weight);
  const bool has_master = id.master != id.weight;
  const bool starts = has_master && !c.holds(id.master) && !c.rank().store.restores_states();
  // Without a master the weight is widened, and rounded when it is written back. The master begins where the
  // weight did, before rounding, and is rounded after the step alone.
  const Operand kept = has_master ? c.edit_tensor(id.master) : Operand{};
  const Operand master = has_master && !starts ? kept : c.scratch(own.count(), 1);
  const Operand own_weight = own_part(c, id.weight, weight, own);
  if (!has_master) copy_flat(c.stream(), own_weight, 0, master, 0, own.count());
  if (starts)
    c.initial_part(c.rank().store.describe(home_of(*c.submission().fragment, id.weight)), own.first, master);
  const AdamSettings& settings = c.options().adam;
  const int step = c.submission().step + 1;
  adam(c.stream(), {.gradient = own_part(c, id.gradient, gradient, own),
                    .weight = own_weight,
                    .master = master,
                    .first_moment = c.edit_tensor(id.first),
                    .second_moment = c.edit_tensor(id.second),
                    .first = 0,
                    .count = own.count(),
                    .learning_rate = settings.learning_rate,
                    .beta1 = settings.beta1,
                    .beta2 = settings.beta2,
                    .epsilon = settings.epsilon,
                    .first_correction = 1 - std::pow(settings.beta1, step),
                    .second_correction = 1 - std::pow(settings.beta2, step),
                    .squares = squares,
                    .clip = c.op().scale});
  if (starts) copy_flat(c.stream(), master, 0, kept, 0, own.count());
  fill(c.stream(), gradient.data, 0,
       static_cast<std::size_t>(gradient.elements() * element_size(gradient.storage)));
}

}  // namespace

void compute_tokens(DeviceOp& c) {
  const OpKind kind = c.op().kind;
  if (kind == OpKind::kInput) return input(c);
  if (kind == OpKind::kEmbedding) return look_up(c);
  if (kind == OpKind::kEmbeddingGrad) return look_up_back(c);
  if (kind == OpKind::kCrossEntropyStats) return loss_stats(c);
  CHECK(kind == OpKind::kCrossEntropy, fmt::format("{} has no tokens", to_string(kind)));
  loss(c);
}

void compute_adam(DeviceOp& c) {
  const AdamInputs inputs(c);
  const Operand squares = inputs.clipped() ? c.in(inputs.squares()) : Operand{};
  for (int i = 0; i < inputs.parameters(); ++i) {
    const AdamIds id = inputs.parameter(i);
    update_parameter(c, id, own_shard(c, c.rank().store.describe(id.weight).elements()), squares);
  }
}

void compute_sum_squares(DeviceOp& c) {
  const Operand sum = c.edit(0);
  for (int i = 0; i < c.op().num_inputs; ++i) {
    const std::int32_t id = c.input_id(i);
    const Operand gradient = own_part(c, id, c.edit_tensor(id), own_shard(c, c.input_tensor(i).elements()));
    const Operand parts = c.scratch(2 * parts_of(gradient.rows), 1);  // FP64 takes two each
    add_squares(c.stream(), gradient, static_cast<double*>(parts.data), c.op().scale, sum);
  }
}

}  // namespace moebius::cuda
