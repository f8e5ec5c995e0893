#include "real/processes/held_everywhere.h"

#include <map>
#include <memory>
#include <utility>

namespace moebius {
namespace {

using Key = std::pair<std::int32_t, MemoryKind>;  // rank and what for
using All = std::map<Key, std::vector<HeldValues>>;

ByteString packed(const RankBlock& block, const ReadHeld& here) {
  ByteWriter bytes;
  for (std::int32_t rank = block.first; rank < block.last; ++rank) {
    for (const MemoryKind memory : {MemoryKind::kWeights, MemoryKind::kOptimizer}) {
      const std::vector<HeldValues> held = here(rank, memory);
      bytes.put(rank);
      bytes.put(memory);
      bytes.put(static_cast<std::uint64_t>(held.size()));
      for (const HeldValues& one : held) {
        bytes.put(one.tensor);
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
      const auto tensor = from.get<Tensor>();
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
