// How many devices a rehearsal has, and whether it has NCCL.
#pragma once

#include <cstdlib>
#include <string>

#include "real/cuda/device.h"
#include "real/cuda/nccl.h"

namespace moebius {

// So many devices in a rehearsal, while it lives.
class Devices {
 public:
  explicit Devices(int count) {
    if (const char* before = std::getenv(kName)) before_ = before;
    setenv(kName, std::to_string(count).c_str(), 1);
  }
  ~Devices() { before_.empty() ? unsetenv(kName) : setenv(kName, before_.c_str(), 1); }
  Devices(const Devices&) = delete;

 private:
  static constexpr const char* kName = "MOEBIUS_REHEARSED_DEVICES";
  std::string before_;
};

// No NCCL in a rehearsal, while it lives.
class WithoutNccl {
 public:
  WithoutNccl() { setenv("MOEBIUS_REHEARSED_WITHOUT_NCCL", "1", 1); }
  ~WithoutNccl() { unsetenv("MOEBIUS_REHEARSED_WITHOUT_NCCL"); }
  WithoutNccl(const WithoutNccl&) = delete;
};

// Whether `devices` devices are there, and NCCL.
inline bool nccl_is_there(int devices) {
  const Devices rehearsed(devices);
  std::string reason;
  return static_cast<int>(cuda::open_devices().size()) >= devices && cuda::open_nccl(reason) != nullptr;
}

}  // namespace moebius
