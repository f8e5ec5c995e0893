// Attention over ranks that share sequences without gathering them: blocks of keys round a ring, or heads cut
// instead of tokens.
#include "hw/error.h"
#include "workloads/schedule/context_part.h"
#include "workloads/training/layers/head_exchange.h"
#include "workloads/training/layers/layer_writer.h"

namespace moebius {
namespace {

TensorId fresh_like(FragmentBuilder& builder, TensorId x) {
  const Tensor like = builder.tensor(x);
  return builder.transient(like.rows, like.columns, like.dtype, like.role);
}

// Two attentions of the same queries as one, weighed by their sums of exponentials.
std::pair<TensorId, TensorId> merge(LayerWriter& writer, const CoreHeads& heads,
                                    const std::pair<TensorId, TensorId>& a,
                                    const std::pair<TensorId, TensorId>& b) {
  FragmentBuilder& builder = writer.builder();
  const std::pair<TensorId, TensorId> sum{fresh_like(builder, a.first), fresh_like(builder, a.second)};
  const std::int32_t index = writer.emit({.kind = OpKind::kAdd,
                                          .role = Role::kAttention,
                                          .shape = {.m = writer.rows(a.first),
                                                    .n = writer.columns(a.first),
                                                    .k = kMergeAttention,
                                                    .heads = heads.query}},
                                         {a.first, a.second, b.first, b.second}, {sum.first, sum.second});
  if (writer.recomputes(OpKind::kAttention, Role::kAttention)) writer.pass().recomputable.insert(index);
  return sum;
}

}  // namespace

// While a rank attends to one block of keys, the next one comes and it hands its own on; the block after that
// may come when the one before has been used: there is room for two (Liu et al. 2023; Megatron-Core's and
// Transformer Engine's p2p).
TensorId write_ring_core(LayerWriter& writer, const CoreHeads& heads, const CoreOperands& operands) {
  FragmentBuilder& builder = writer.builder();
  const TrainingWorkload& work = writer.workload();
  const CoreReach reach{static_cast<std::int32_t>(work.micro_batch),
                        writer.rows(operands.q) / work.micro_batch, 0};
  const auto last_op = [&] { return static_cast<std::int32_t>(builder.fragment().ops.size()) - 1; };
  CoreOperands block = operands;
  std::int32_t used = -1;  // the attention that has read the block before this one
  std::pair<TensorId, TensorId> sum;
  for (int step = 0; step < writer.plan().cp; ++step) {
    CoreOperands next = block;
    if (step + 1 < writer.plan().cp) {
      next.k = fresh_like(builder, block.k);
      next.v = fresh_like(builder, block.v);
      Op shift{.kind = OpKind::kAllToAll,
               .lane = Lane::kTensorComm,
               .role = Role::kAttention,
               .group = GroupRole::kContext,
               .match = builder.next_match(),
               .shape = {.m = writer.rows(block.k), .n = writer.columns(block.k), .k = kRingShift}};
      shift.payload = builder.tensor(block.k).bytes() + builder.tensor(block.v).bytes();
      const std::vector<std::int32_t> after =
          used >= 0 ? std::vector<std::int32_t>{used} : std::vector<std::int32_t>{};
      const std::int32_t index = writer.emit(shift, {block.k, block.v}, {next.k, next.v}, after);
      if (writer.recomputes(OpKind::kAttention, Role::kAttention)) writer.pass().recomputable.insert(index);
    }
    const auto part = emit_core(writer, heads, reach, block, kRingStep + static_cast<std::uint32_t>(step));
    used = last_op();
    sum = step == 0 ? part : merge(writer, heads, sum, part);
    block = next;
  }
  return sum.first;
}

TensorId exchange_heads(LayerWriter& writer, TensorId x, std::int64_t how) {
  const std::int64_t size = writer.plan().cp, m = writer.rows(x), n = writer.columns(x);
  const bool out = how == kHeadsOut;
  FragmentBuilder& builder = writer.builder();
  const TensorId y = builder.transient(out ? m * size : m / size, out ? n / size : n * size,
                                       builder.tensor(x).dtype, builder.tensor(x).role);
  Op op{.kind = OpKind::kAllToAll,
        .dtype = builder.tensor(x).dtype,
        .lane = Lane::kTensorComm,
        .role = builder.tensor(x).role,
        .group = GroupRole::kContext,
        .match = builder.next_match(),
        .shape = {.m = m, .n = n, .k = how}};
  op.payload = builder.tensor(x).bytes();
  writer.emit(op, {x}, {y});
  return y;
}

TensorId write_ulysses_core(LayerWriter& writer, const CoreHeads& heads, const CoreOperands& operands) {
  const int size = writer.plan().cp;
  const CoreHeads share{heads.query / size, heads.kv / size, heads.head_dim, heads.v_dim};
  const CoreOperands whole{exchange_heads(writer, operands.q, kHeadsOut),
                           exchange_heads(writer, operands.k, kHeadsOut),
                           exchange_heads(writer, operands.v, kHeadsOut)};
  const CoreReach reach{static_cast<std::int32_t>(writer.workload().micro_batch),
                        writer.workload().sequence_length,
                        static_cast<std::int32_t>(writer.model().window(writer.builder().layer))};
  const TensorId o = emit_core(writer, share, reach, whole, kGatheredAll).first;
  return exchange_heads(writer, o, kHeadsBack);
}

}  // namespace moebius
