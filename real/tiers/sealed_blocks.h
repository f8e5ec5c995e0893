// Blocks of a tier that outlives its process: each ends in a seal that says whose bytes they are and what
// they add up to. Whatever happens while a block is written - the process is killed, the power fails, the
// disk takes half of it - it is read back whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "real/tiers/aligned_memory.h"
#include "workloads/serving/kv/block_table.h"
#include "workloads/serving/kv/tier.h"

namespace moebius::kv {

// Behind the payload. Numbers in the machine's own order: the file does not travel.
struct BlockSeal {
  std::uint64_t mark = 0, hash = 0, bytes = 0;
  std::uint64_t payload_sum = 0, seal_sum = 0;
};

// A block of the tier, in whole pages.
constexpr std::int64_t sealed_bytes(std::int64_t payload) {
  return round_up_to_page(payload + static_cast<std::int64_t>(sizeof(BlockSeal)));
}

// 64 bits of so many bytes; each changed bit changes about half of them.
std::uint64_t checksum(const std::byte* bytes, std::int64_t count);

// `memory` holds sealed_bytes(payload): the payload is there, the seal is written behind it.
void seal_block(std::byte* memory, std::int64_t payload, BlockHash hash);
// Whose bytes were read; nothing: they are not whole.
std::optional<BlockHash> sealed_hash(const std::byte* memory, std::int64_t payload);

// What a tier has kept, block by block; all of it is read. run_error: a read failed.
std::vector<std::optional<BlockHash>> read_back(Tier& tier, std::int64_t payload);

}  // namespace moebius::kv
