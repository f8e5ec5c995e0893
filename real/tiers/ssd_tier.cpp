#include "real/tiers/ssd_tier.h"

#include <fmt/format.h>

#include "hw/error.h"

namespace moebius::kv {
namespace {

constexpr int kMostDepth = 256;  // as many threads, at worst

TierShape shape_of(const SsdOptions& options) {
  CHECK(options.block_bytes > 0 && options.blocks > 0 && options.depth >= 1 && options.depth <= kMostDepth,
        fmt::format("block_bytes={} blocks={} depth={}", options.block_bytes, options.blocks, options.depth));
  return {options.block_bytes, options.blocks, options.depth, kPage};
}

}  // namespace

SsdTier::SsdTier(const SsdOptions& options, HostClock::time_point zero)
    : WallTier(shape_of(options), zero),
      file_(options.directory, shape_, options.direct, options.name),
      bounces_(static_cast<std::size_t>(options.depth)) {
  std::string reason = "as asked for";
  if (options.ring) ring_ = open_ring(file_, service_, shape_.depth, reason);
  way_ = fmt::format("io_uring, depth {}", shape_.depth);
  if (ring_) return;
  way_ = fmt::format("{} threads with pread and pwrite: {}", shape_.depth, reason);
  threads_.emplace(service_, shape_.depth, [this](const TakenPiece& taken, int thread) {
    return file_.carry_out(taken, bounces_[static_cast<std::size_t>(thread)]);
  });
}

std::string SsdTier::description() const {
  return fmt::format("{} blocks of {} in {}; {}", shape_.blocks,
                     to_text(Bytes{static_cast<double>(shape_.block_bytes)}), file_.description(), way_);
}

}  // namespace moebius::kv
