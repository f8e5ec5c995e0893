#include "real/processes/held_everywhere.h"

#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace moebius {
namespace {

using Key = std::pair<std::int32_t, MemoryKind>;  // rank and what for
using All = std::map<Key, std::vector<HeldValues>>;

// Every field of a tensor but its slots, for whoever writes or reads it.
template <class AnyTensor, class Visit>
void for_each_field(AnyTensor& t, const Visit& visit) {
  visit(t.scope), visit(t.memory), visit(t.dtype), visit(t.role), visit(t.layer), visit(t.key);
  visit(t.rows), visit(t.columns), visit(t.first_expert), visit(t.experts);
  visit(t.first_row), visit(t.first_column), visit(t.init), visit(t.scaling), visit(t.on_host);
  visit(t.shards), visit(t.cut), visit(t.second), visit(t.kept), visit(t.freed);
  visit(t.tensor_copies);
}

void put(ByteWriter& bytes, const Tensor& tensor) {
  for_each_field(tensor, [&](const auto& field) { bytes.put(field); });
  const std::vector<std::int32_t> none;
  bytes.put_list(std::span<const std::int32_t>(tensor.slots ? *tensor.slots : none));
}

Tensor get_tensor(ByteReader& from) {
  Tensor tensor;
  for_each_field(tensor, [&](auto& field) { field = from.get<std::remove_reference_t<decltype(field)>>(); });
  const auto slots = from.get_list<std::int32_t>();
  if (!slots.empty()) tensor.slots = std::make_shared<const std::vector<std::int32_t>>(slots);
  return tensor;
}

ByteString packed(const RankBlock& block, const ReadHeld& here) {
  ByteWriter bytes;
  for (std::int32_t rank = block.first; rank < block.last; ++rank) {
    for (const MemoryKind memory : {MemoryKind::kWeights, MemoryKind::kOptimizer}) {
      const std::vector<HeldValues> held = here(rank, memory);
      bytes.put(rank);
      bytes.put(memory);
      bytes.put(static_cast<std::uint64_t>(held.size()));
      for (const HeldValues& one : held) {
        put(bytes, one.tensor);
        bytes.put_list(std::span<const float>(one.values));
      }
    }
  }
  return bytes.take();
}

void unpack(const ByteString& bytes, All& all) {
  for (ByteReader from(bytes); !from.at_end();) {
    const auto rank = from.get<std::int32_t>();
    const auto memory = from.get<MemoryKind>();
    std::vector<HeldValues>& held = all[{rank, memory}];
    for (auto left = from.get<std::uint64_t>(); left > 0; --left) {
      const Tensor tensor = get_tensor(from);
      held.push_back({tensor, from.get_list<float>()});
    }
  }
}

}  // namespace

ReadHeld held_everywhere(Processes& processes, int ranks, const ReadHeld& here) {
  const auto all = std::make_shared<All>();
  for (const ByteString& bytes : processes.gather(packed(processes.block_of(processes.self(), ranks), here)))
    unpack(bytes, *all);
  return [all](std::int32_t rank, MemoryKind memory) { return (*all)[{rank, memory}]; };
}

}  // namespace moebius
