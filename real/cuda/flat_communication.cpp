#include "real/cuda/flat_communication.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::cuda {

FlatCommunication::Flat FlatCommunication::flat(const Operand& x, int device, std::int64_t first,
                                                std::int64_t count) {
  if (device == here()) return {x, first};
  return {brought_flat(c_, x, device, first, count), 0};
}

Operand FlatCommunication::near(const Operand& x, int device) {
  return device == here() ? x : brought(c_, x, device);
}

void FlatCommunication::reduce(const std::vector<Reduction>& all) {
  std::vector<Reduction> own;  // without NCCL
  for (const Reduction& one : all) {
    const std::int64_t elements = one.x.elements(), mine = shard(elements, me_).count();
    count_sent(elements - mine, one.element);
    if (nccl_takes(one.x, one.y)) {
      collect(NcclKind::kReduceScatter, byte_at(one.x, 0), one.y, one.y_first, mine);
    } else {
      own.push_back(one);
    }
  }
  if (own.empty()) return;
  expect_few_members();
  std::vector<Operand> brought;
  for (const Reduction& one : own) brought.push_back(one.x);
  meet(brought, nullptr, [&](const All& members) {
    for (std::size_t i = 0; i < own.size(); ++i) sum_shards(own[i], i, members);
  });
}

void FlatCommunication::sum_shards(const Reduction& one, std::size_t operand, const All& members) {
  const FlatShard own = shard(one.x.elements(), me_);
  Pieces pieces;
  pieces.count = size_;
  for (int from = 0; from < size_; ++from) {
    const Brought& there = *members[from];
    expect(there.operands[operand].elements(), one.x.elements());
    const Flat piece = flat(there.operands[operand], there.device, own.first, own.count());
    pieces.of[from] = piece.of;
    pieces.first[from] = piece.first;
  }
  sum_flat(c_.stream(), pieces, one.y, one.y_first, own.count());
}

void FlatCommunication::gather(const std::vector<Gathering>& all) {
  std::vector<Gathering> own;  // without NCCL
  for (const Gathering& one : all) {
    const FlatShard mine = shard(one.y.elements(), me_);
    count_sent(mine.count() * (size_ - 1), one.element);
    if (nccl_takes(one.y, one.source())) {
      const char* from = one.brought ? byte_at(*one.brought, 0) : byte_at(one.y, mine.first);
      collect(NcclKind::kAllGather, from, one.y, 0, mine.count());
    } else {
      own.push_back(one);
    }
  }
  if (own.empty()) return;
  std::vector<Operand> brought;
  for (const Gathering& one : own) brought.push_back(one.source());
  meet(brought, nullptr, [&](const All& members) {
    for (std::size_t i = 0; i < own.size(); ++i) copy_shards(own[i], i, members);
  });
}

void FlatCommunication::copy_shards(const Gathering& one, std::size_t operand, const All& members) {
  for (int from = 0; from < size_; ++from) {
    if (from == me_ && !one.brought) continue;
    const Brought& there = *members[from];
    const FlatShard s = shard(one.y.elements(), from);
    expect(there.operands[operand].elements(), one.brought ? s.count() : one.y.elements());
    const Flat piece = flat(there.operands[operand], there.device, one.brought ? 0 : s.first, s.count());
    copy_flat(c_.stream(), piece.of, piece.first, one.y, s.first, s.count());
  }
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
  std::vector<Reduction> plain;
  std::vector<Operand> held, sums;
  for (int i = 0; i < c_.op().num_inputs; ++i) {
    const Operand x = c_.plain_in(i);
    held.push_back(c_.edit(i));
    sums.push_back(c_.scratch(1, shard(x.elements(), me_).count()));
    element_ = element_of(i);
    if (travels_in_8_bits(i)) {
      reduce_codes(x, sums.back(), 0);
    } else {
      plain.push_back({x, sums.back(), 0, element_});
    }
  }
  reduce(plain);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Operand mine = run_of(held[i], 0, sums[i].columns);
    add(c_.stream(), mine, sums[i], mine);
  }
}

void FlatCommunication::gather_shards() {
  std::vector<Gathering> all;
  for (int i = 0; i < c_.op().num_inputs; ++i) {
    const Operand shard_here = c_.plain_in(i);
    const Tensor& whole = c_.output_tensor(i);
    const Operand y = c_.out(i, whole.held_rows(), whole.columns);
    const FlatShard own = shard(y.elements(), me_);
    copy_flat(c_.stream(), shard_here, 0, y, own.first, own.count());
    all.push_back({y, element_bytes(whole.dtype)});
  }
  gather(all);
}

template <class ReduceCoded>
std::vector<FlatCommunication::Gathering> FlatCommunication::edited(const ReduceCoded& reduce_coded) {
  std::vector<Gathering> plain;
  for (int i = 0; i < c_.op().num_inputs; ++i) {
    element_ = element_of(i);
    const Operand x = c_.edit(i);
    if (travels_in_8_bits(i)) {
      reduce_coded(x);
    } else {
      plain.push_back({x, element_});
    }
  }
  return plain;
}
FlatCommunication::Reduction FlatCommunication::in_its_place(const Gathering& of) const {
  return {of.y, of.y, shard(of.y.elements(), me_).first, of.element};
}

void FlatCommunication::all_reduce() {
  std::vector<std::pair<Operand, Gathering>> all;  // what is summed; where
  if (in_place()) {
    for (const Gathering& of : edited([&](const Operand& x) {
           reduce_codes(x, x, shard(x.elements(), me_).first);
           gather_codes(x);
         }))
      all.emplace_back(of.y, of);
  } else {
    for (int i = 0; i < c_.op().num_inputs; ++i) {
      const Operand x = c_.plain_in(i);
      all.push_back({x, {c_.out(i, x), element_}});
    }
  }
  std::vector<Reduction> reductions;
  std::vector<Gathering> gatherings;
  for (const auto& [x, to] : all) {
    if (nccl_takes(x, to.y)) {
      sum_by_nccl(x, to);
      continue;
    }
    reductions.push_back({x, to.y, shard(x.elements(), me_).first, to.element});
    gatherings.push_back(to);
  }
  reduce(reductions);
  gather(gatherings);
}

// What is counted is what the two rounds of own copies send, as the host's.
void FlatCommunication::sum_by_nccl(const Operand& x, const Gathering& to) {
  count_sent(2 * (x.elements() - shard(x.elements(), me_).count()), to.element);
  collect(NcclKind::kAllReduce, byte_at(x, 0), to.y, 0, x.elements());
}

void FlatCommunication::reduce_scatter() {
  if (sharded()) return add_to_shards();
  if (in_place()) {
    std::vector<Reduction> all;
    for (const Gathering& of :
         edited([&](const Operand& x) { reduce_codes(x, x, shard(x.elements(), me_).first); }))
      all.push_back(in_its_place(of));
    return reduce(all);
  }
  const Operand x = c_.plain_in(0);
  CHECK(x.rows % size_ == 0, fmt::format("{} rows over {} members", x.rows, size_));
  reduce({{x, c_.out(0, x.rows / size_, x.columns), 0, element_}});
}

void FlatCommunication::all_gather() {
  if (sharded()) return gather_shards();
  if (in_place()) {
    std::vector<Gathering> all;
    for (int i = 0; i < c_.op().num_inputs; ++i) all.push_back({c_.edit(i), element_of(i)});
    return gather(all);
  }
  const Operand x = c_.plain_in(0);
  gather({{c_.out(0, x.rows * size_, x.columns), element_, x}});
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
