// Blocks in pinned memory of the host, as the tier below a device's memory: pieces are copied from and to
// device memory by `depth` threads with a stream each, so that copies of both directions run beside each
// other and beside kernels. What wrote the device's bytes must have ended before the transfer is submitted.
#pragma once

#include <memory>
#include <vector>

#include "real/cuda/device.h"
#include "real/tiers/wall_tier.h"

namespace moebius::cuda {

class PinnedTier : public kv::WallTier {
 public:
  // On the device that open_device() chose; times count from `zero`. run_error: CUDA pins no more memory.
  PinnedTier(const kv::TierShape& shape, kv::HostClock::time_point zero);
  ~PinnedTier() override;

  std::string description() const override;
  std::byte* memory(std::int64_t block) override;  // of the host, pinned; each block on pages of its own

 private:
  std::string copy(const kv::TakenPiece& taken, Stream stream);

  struct Pinned {
    explicit Pinned(std::int64_t bytes);
    ~Pinned();
    Pinned(const Pinned&) = delete;
    void* whole = nullptr;
    std::byte* first = nullptr;  // at a page
  } pinned_;
  std::vector<Stream> streams_;
  std::unique_ptr<kv::TransferThreads> threads_;
};

}  // namespace moebius::cuda
