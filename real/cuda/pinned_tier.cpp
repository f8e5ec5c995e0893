#include "real/cuda/pinned_tier.h"

#include <fmt/format.h>

#include "hw/error.h"
#include "real/tiers/aligned_memory.h"

namespace moebius::cuda {

PinnedTier::Pinned::Pinned(std::int64_t bytes)
    : whole(allocate_pinned(static_cast<std::size_t>(bytes + kv::kPage))) {
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(whole));
  first = static_cast<std::byte*>(whole) + (kv::round_up_to_page(address) - address);
}

PinnedTier::Pinned::~Pinned() {
  release_pinned(whole);
}

PinnedTier::PinnedTier(const kv::TierShape& shape, kv::HostClock::time_point zero)
    : WallTier(shape, zero), pinned_(kv::round_up_to_page(shape.block_bytes) * shape.blocks) {
  CHECK(shape.depth >= 1, fmt::format("depth={}", shape.depth));
  for (int i = 0; i < shape.depth; ++i) streams_.push_back(make_stream());
  threads_ = std::make_unique<kv::TransferThreads>(
      service_, shape.depth, [this](const kv::TakenPiece& taken, int thread) {
        return copy(taken, streams_[static_cast<std::size_t>(thread)]);
      });
}

PinnedTier::~PinnedTier() {
  threads_.reset();
  for (const Stream stream : streams_) destroy(stream);
}

std::string PinnedTier::description() const {
  return fmt::format("pinned host memory, {} blocks of {}, {} copies at a time", shape_.blocks,
                     to_text(Bytes{static_cast<double>(shape_.block_bytes)}), shape_.depth);
}

std::byte* PinnedTier::memory(std::int64_t block) {
  CHECK(block >= 0 && block < shape_.blocks, fmt::format("block={} blocks={}", block, shape_.blocks));
  return pinned_.first + block * kv::round_up_to_page(shape_.block_bytes);
}

// A copy that the device refuses fails the transfer, not the thread.
std::string PinnedTier::copy(const kv::TakenPiece& taken, Stream stream) {
  const kv::Piece& piece = taken.piece;
  std::byte* const host = memory(piece.block) + piece.offset;
  try {
    if (taken.direction == kv::Direction::kRead) {
      copy_to_device(stream, piece.memory, host, static_cast<std::size_t>(piece.bytes));
    } else {
      copy_to_host(stream, host, piece.memory, static_cast<std::size_t>(piece.bytes));
    }
    synchronise(stream);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace moebius::cuda
