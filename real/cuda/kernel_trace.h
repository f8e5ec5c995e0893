// What the device ran and when: kernels, copies and fills, each with what it was run for. By CUPTI, which is
// opened at run time; only kernel_trace.cu knows it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "real/cuda/device_clock.h"

namespace moebius::cuda {

struct DeviceActivity {
  std::int64_t owner = -1;  // -1: nobody's
  std::string name;         // of the kernel; "copy", "fill"
  Time start, end;          // counted from the start of the run
  std::uint32_t stream = 0;
};

class KernelTrace {
 public:
  virtual ~KernelTrace() = default;
  // What the calling thread gives to the device from here to leave() is the owner's, a number from 0.
  virtual void enter(std::int64_t owner) = 0;
  virtual void leave() = 0;
  // All since the last call, by start. What was given to the device must have ended.
  virtual std::vector<DeviceActivity> take() = 0;
};

// Records from now on; one at a time in a process. run_error: CUPTI is not there, or refuses (another
// profiler has it, or the driver allows it to administrators only).
std::unique_ptr<KernelTrace> open_kernel_trace(HostClock::time_point start);

}  // namespace moebius::cuda
