// Pieces of an SSD tier by io_uring: one thread keeps up to `depth` of them with the kernel.
#pragma once

#include <memory>
#include <string>

#include "real/tiers/ssd_file.h"
#include "real/tiers/transfer_service.h"

namespace moebius::kv {

class SsdRing {
 public:
  virtual ~SsdRing() = default;  // closes the service, comes back when nothing is with the kernel
};

// Null where there is no io_uring, with the reason: built without liburing, or refused (containers do). The
// file and the service outlive it.
std::unique_ptr<SsdRing> open_ring(const SsdFile& file, TransferService& service, int depth,
                                   std::string& reason);

}  // namespace moebius::kv
