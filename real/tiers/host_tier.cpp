#include "real/tiers/host_tier.h"

#include <fmt/format.h>

#include <cstring>

#include "hw/error.h"

namespace moebius::kv {

HostTier::HostTier(const TierShape& shape, HostClock::time_point zero)
    : WallTier(shape, zero),
      blocks_(round_up_to_page(shape.block_bytes) * shape.blocks),
      threads_(service_, shape.depth, [this](const TakenPiece& taken, int) {
        std::byte* const block = memory(taken.piece.block) + taken.piece.offset;
        const bool read = taken.direction == Direction::kRead;
        std::memcpy(read ? taken.piece.memory : block, read ? block : taken.piece.memory,
                    static_cast<std::size_t>(taken.piece.bytes));
        return std::string{};
      }) {}

std::string HostTier::description() const {
  return fmt::format("host memory, {} blocks of {}, whole pages, not pinned, {} threads copy", shape_.blocks,
                     to_text(Bytes{static_cast<double>(shape_.block_bytes)}), shape_.depth);
}

std::byte* HostTier::memory(std::int64_t block) {
  CHECK(block >= 0 && block < shape_.blocks, fmt::format("block={} blocks={}", block, shape_.blocks));
  return blocks_.data() + block * round_up_to_page(shape_.block_bytes);
}

}  // namespace moebius::kv
