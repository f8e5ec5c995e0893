#include "real/cuda/flat_communication.h"

namespace moebius::cuda {

FlatCommunication::Flat FlatCommunication::flat(const Brought& from, std::int64_t first, std::int64_t count) {
  if (from.device == here()) return {from.operands[0], first};
  return {brought_flat(c_, from.operands[0], from.device, first, count), 0};
}

Operand FlatCommunication::near(const Operand& x, int device) {
  return device == here() ? x : brought(c_, x, device);
}

void FlatCommunication::reduce(const Operand& x, const Operand& y, std::int64_t y_first) {
  const FlatShard own = shard(x.elements(), me_);
  count_sent(x.elements() - own.count(), element_);
  if (nccl_takes(x, y)) {
    return collect(NcclKind::kReduceScatter, byte_at(x, 0), y, y_first, own.count());
  }
  expect_few_members();
  meet({x}, nullptr, [&](const All& all) {
    Pieces pieces;
    pieces.count = size_;
    for (int from = 0; from < size_; ++from) {
      expect(all[from]->operands[0].elements(), x.elements());
      const Flat piece = flat(*all[from], own.first, own.count());
      pieces.of[from] = piece.of;
      pieces.first[from] = piece.first;
    }
    sum_flat(c_.stream(), pieces, y, y_first, own.count());
  });
}

void FlatCommunication::gather(const Operand& y, const Operand* brought) {
  const FlatShard own = shard(y.elements(), me_);
  count_sent(own.count() * (size_ - 1), element_);
  if (nccl_takes(y, brought == nullptr ? y : *brought)) {
    const char* from = brought == nullptr ? byte_at(y, own.first) : byte_at(*brought, 0);
    return collect(NcclKind::kAllGather, from, y, 0, own.count());
  }
  meet({brought == nullptr ? y : *brought}, nullptr, [&](const All& all) {
    for (int from = 0; from < size_; ++from) {
      if (from == me_ && brought == nullptr) continue;
      const FlatShard s = shard(y.elements(), from);
      const Operand& x = all[from]->operands[0];
      expect(x.elements(), brought == nullptr ? y.elements() : s.count());
      const Flat piece = flat(*all[from], brought == nullptr ? s.first : 0, s.count());
      copy_flat(c_.stream(), piece.of, piece.first, y, s.first, s.count());
    }
  });
}

Operand FlatCommunication::codes_of(const Operand& x, const FlatShard& run) {
  const Operand codes = c_.scratch(1, run.count(), Storage::kFp8Rows);
  if (run.count() > 0) quantise(c_.stream(), run_of(x, run.first, run.count()), codes);
  return codes;
}

void FlatCommunication::reduce_codes(const Operand& x, const Operand& y, std::int64_t y_first) {
  const FlatShard own = shard(x.elements(), me_);
  count_sent(x.elements() - own.count(), element_bytes(DType::kFp8));
  expect_few_members();
  std::vector<Operand> codes;
  codes.reserve(size_);
  for (int to = 0; to < size_; ++to) codes.push_back(codes_of(x, shard(x.elements(), to)));
  meet(codes, nullptr, [&](const All& all) {
    Pieces pieces;
    pieces.count = size_;
    for (int from = 0; from < size_; ++from) {
      pieces.of[from] = c_.scratch(1, own.count());
      if (own.count() > 0)
        convert(c_.stream(), near(all[from]->operands[me_], all[from]->device), pieces.of[from]);
      pieces.first[from] = 0;
    }
    sum_flat(c_.stream(), pieces, y, y_first, own.count());
  });
}

void FlatCommunication::gather_codes(const Operand& y) {
  const FlatShard own = shard(y.elements(), me_);
  count_sent(own.count() * (size_ - 1), element_bytes(DType::kFp8));
  meet({codes_of(y, own)}, nullptr, [&](const All& all) {
    for (int from = 0; from < size_; ++from) {
      const FlatShard s = shard(y.elements(), from);
      if (s.count() == 0) continue;
      const Operand values = c_.scratch(1, s.count());
      convert(c_.stream(), near(all[from]->operands[0], all[from]->device), values);
      copy_flat(c_.stream(), values, 0, y, s.first, s.count());
    }
  });
}

void FlatCommunication::add_to_shards() {
  for (int i = 0; i < c_.op().num_inputs; ++i) {
    const Operand x = c_.plain_in(i), held = c_.edit(i);
    const FlatShard own = shard(x.elements(), me_);
    const Operand sum = c_.scratch(1, own.count());
    element_ = element_bytes(c_.output_tensor(i).dtype);
    travels_in_8_bits(i) ? reduce_codes(x, sum, 0) : reduce(x, sum, 0);
    const Operand mine = run_of(held, 0, own.count());
    add(c_.stream(), mine, sum, mine);
  }
}

void FlatCommunication::gather_shards() {
  for (int i = 0; i < c_.op().num_inputs; ++i) {
    const Operand shard_here = c_.plain_in(i);
    const Tensor& whole = c_.output_tensor(i);
    const Operand y = c_.out(i, whole.held_rows(), whole.columns);
    const FlatShard own = shard(y.elements(), me_);
    element_ = element_bytes(whole.dtype);
    copy_flat(c_.stream(), shard_here, 0, y, own.first, own.count());
    gather(y, nullptr);
  }
}

void FlatCommunication::copy_host() {
  const bool out = c_.op().kind == OpKind::kCopyToHost;
  for (int i = 0; i < c_.op().num_inputs; ++i) {
    const bool state = c_.input_tensor(i).memory == MemoryKind::kOptimizer;
    if (state && !c_.holds(c_.input_id(i)) && !c_.rank().store.restores_states()) continue;
    const Operand x = c_.in(i), y = c_.out_like(i, x);
    const auto bytes = static_cast<std::size_t>(x.elements() * element_size(x.storage));
    const std::size_t scales = sizeof(float) * static_cast<std::size_t>(num_scales(x));
    const auto copy = out ? copy_to_host : copy_to_device;
    copy(c_.stream(), y.data, x.data, bytes);
    if (scales > 0) copy(c_.stream(), y.scales, x.scales, scales);
  }
  c_.issued().met = c_.issued().start;
}

}  // namespace moebius::cuda
