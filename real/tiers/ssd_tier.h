// Blocks in a file on a disk, with `depth` pieces at a time given to the kernel by io_uring, or, where that
// is refused, by as many threads with pread and pwrite.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "real/tiers/ssd_ring.h"
#include "real/tiers/wall_tier.h"

namespace moebius::kv {

struct SsdOptions {
  std::string directory;
  std::int64_t block_bytes = 0, blocks = 0;
  int depth = 32;
  bool direct = true;  // past the page cache, where the file system allows
  bool ring = true;    // io_uring, where there is one
  std::string name =
      {};  // of a file that stays, with blocks that are sealed (sealed_blocks.h); empty: none does
};

// Writes have a grain of a page; reads may be of any bytes. What is not made of whole pages, or whose memory
// does not begin at one, is copied once more on its way.
class SsdTier : public WallTier {
 public:
  // Times count from `zero`. run_error: see SsdFile.
  SsdTier(const SsdOptions& options, HostClock::time_point zero);

  std::string description() const override;
  bool direct() const { return file_.direct(); }  // past the page cache
  std::byte* memory(std::int64_t) override { return nullptr; }

 private:
  SsdFile file_;
  std::string way_;
  std::vector<AlignedMemory> bounces_;  // of each thread
  std::unique_ptr<SsdRing> ring_;       // one of the two, last: they end first
  std::optional<TransferThreads> threads_;
};

}  // namespace moebius::kv
